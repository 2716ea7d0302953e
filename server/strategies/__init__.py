"""Server side of each method."""
