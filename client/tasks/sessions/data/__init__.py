"""Click sessions: readers, generator, examples and graphs."""
