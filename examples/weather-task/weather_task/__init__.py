"""Weather stations: a task for fedloom in another package."""
