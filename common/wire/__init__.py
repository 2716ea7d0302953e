"""Wire format between server and clients: one schema, one codec."""
