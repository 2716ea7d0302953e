"""Sessions study: next items on four sets of clicks."""
