"""Planners of a run's privacy budget over its rounds."""
