"""Flower's SuperLink: its process, its guard, its control and the erasure of ended runs."""
