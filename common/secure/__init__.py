"""Secure sums: terms of a sum, cards of helpers, masks, quantisation and noise. Pure."""
