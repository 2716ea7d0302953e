"""The owner's side: private data, local training, private state, recommendations."""
