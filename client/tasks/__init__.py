"""Tasks at the client: private data, local training, predictions."""
