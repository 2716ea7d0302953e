"""Sessions task at the client."""
