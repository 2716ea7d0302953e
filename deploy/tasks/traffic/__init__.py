"""Traffic task at the command line and in reports."""
