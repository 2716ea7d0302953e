"""Ratings task: definitions that server and clients share."""
