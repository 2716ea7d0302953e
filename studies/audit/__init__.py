"""Empirical audit of the privacy guarantees: lower bounds on ε of the code that releases."""
