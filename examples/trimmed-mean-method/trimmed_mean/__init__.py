"""Coordinate-wise trimmed mean: a method for fedloom in another package."""
