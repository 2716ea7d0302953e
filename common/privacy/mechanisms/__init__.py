"""Mechanisms of differential privacy."""
