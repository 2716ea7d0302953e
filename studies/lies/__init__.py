"""Lies of one client against every method: end of the run, quality of the model, and who is named."""
