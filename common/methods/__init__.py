"""Options and capabilities of each method."""
