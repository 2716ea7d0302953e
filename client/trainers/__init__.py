"""Client side of each method."""
