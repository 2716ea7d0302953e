"""The wire: one schema, one codec."""
