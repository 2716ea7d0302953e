"""Figures of SR-GNN's authors on whole sets (algorithms.md §2.8), against which our model is checked."""

WHOLE = "whole"
"""Protocol of the check: the published training and test part, all items and clients together."""

EPOCHS = 4

PUBLISHED = {"yoochoose1_64": (0.7057, 0.3094, 55_898), "diginetica": (0.5073, 0.1759, 60_858)}
"""Data set -> HR@20, MRR@20 and test cases."""
