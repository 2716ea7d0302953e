"""Server sides of the methods."""
