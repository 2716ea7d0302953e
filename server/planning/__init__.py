"""Planning of a privacy budget over rounds."""
