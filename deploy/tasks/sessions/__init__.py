"""Sessions task at the command line."""
