"""Session recommendation on real clicks: `python -m benchmarks.sessions` writes docs/results/sessions.md and sessions.json."""
