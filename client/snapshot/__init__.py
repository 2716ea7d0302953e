"""Private state of all clients of a simulation after one round, as files."""
