"""Rules task at the command line."""
