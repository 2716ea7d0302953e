"""Readers of private data, the only modules that access raw data."""
