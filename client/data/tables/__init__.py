"""Table engine: one reader for every table a user has."""
