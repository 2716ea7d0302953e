"""Resident client: a long-lived process on Flower's Fleet API."""
