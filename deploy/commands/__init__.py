"""Commands of `fedloom`, one file each."""
