"""Rules study: rule recommendation on the IFTTT set."""
