"""Records of a run: folder, events, result, verdict."""
