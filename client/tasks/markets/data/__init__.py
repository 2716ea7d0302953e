"""Markets: readers, embedded data, graphs of items, what is held out."""
