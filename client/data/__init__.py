"""Readers of private data; raw data is reachable from here only."""
