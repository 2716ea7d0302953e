"""Measured comparisons; each prints a table and writes JSON."""
