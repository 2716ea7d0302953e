"""The rules task on the real IFTTT set: every method under equal tuning, next to what plain counts reach."""
