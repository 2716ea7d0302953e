"""Secure sums at the server: discovery of helpers, and the opening of a round's sum."""
