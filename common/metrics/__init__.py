"""Metrics shared by several tasks."""
