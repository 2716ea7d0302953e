"""Service of the door, through which clients reach the server: its frames, limits and certificates."""
