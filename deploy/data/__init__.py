"""Data of clients on this machine: check, sources, partitions and privacy budgets."""
