"""Server sides of the methods, one file each."""
