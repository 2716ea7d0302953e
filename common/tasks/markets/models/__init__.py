"""Models of the markets task."""
