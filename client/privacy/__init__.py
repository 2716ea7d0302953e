"""The client's side of privacy: what was spent on which data, kept so that no crash, copy or rename can hide it."""
