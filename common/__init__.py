"""What server and clients must agree on: configuration, the wire schema, models, metrics."""
