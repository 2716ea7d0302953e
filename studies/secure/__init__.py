"""Secure sums: their cost at clients, helpers and server, random kills, and an audit of the noise."""
