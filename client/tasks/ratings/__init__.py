"""Ratings task at the client."""
