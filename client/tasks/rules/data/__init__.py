"""The private side of the rules task: readers, splits, negatives and batches of smart homes' rules."""
