"""Traffic task at the client."""
