"""Margin of strict predicates; importing it must not import torch."""

STRICT = 1e-6
"""ε of strict predicates, in the units of the variables."""
