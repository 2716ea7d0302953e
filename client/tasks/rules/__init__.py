"""Rules task at the client."""
