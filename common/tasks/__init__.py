"""Each task's public vocabulary, options and metrics; no I/O."""
