"""Tasks at the command line and in reports."""
