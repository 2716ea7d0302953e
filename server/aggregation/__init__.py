"""Aggregation maths: pure functions of arrays."""
