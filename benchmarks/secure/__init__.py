"""Cost of secure sums at clients, helpers and server."""
