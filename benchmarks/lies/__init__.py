"""Lies of one client against every method: the others finish, their model is as good, and the liar is named."""
