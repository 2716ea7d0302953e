"""Time series of sensors: readers, generator, split."""
