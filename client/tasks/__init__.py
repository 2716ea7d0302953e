"""What each task makes of a client's data: batches, objective, metrics."""
