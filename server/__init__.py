"""Server of a federation: a Flower ServerApp, its strategies and its records."""
