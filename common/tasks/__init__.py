"""Vocabulary, options and metrics of each task; no I/O."""
