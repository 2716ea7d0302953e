"""Commands of `fedloom`, one file each: signatures, with heavy imports inside functions."""
