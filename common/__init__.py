"""Agreement of server and clients: configuration, wire schema, models, metrics."""
