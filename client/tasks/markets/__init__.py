"""Markets task at the client."""
