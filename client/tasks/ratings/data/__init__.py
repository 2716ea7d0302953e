"""Ratings of products: reading, sharing out, splitting."""
