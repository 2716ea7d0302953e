"""Live page of runs, served to this machine only."""
