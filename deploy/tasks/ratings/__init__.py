"""Ratings task at the command line."""
