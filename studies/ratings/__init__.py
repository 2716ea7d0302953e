"""Ratings study: rating prediction under local privacy on two film sets."""
