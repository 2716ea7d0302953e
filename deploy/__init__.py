"""The composition root: the `fedloom` command and everything that starts processes."""
