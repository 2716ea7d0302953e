"""Kills and pauses of every process of a federation: what they cost, and what they change."""
