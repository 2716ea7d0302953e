"""The federation's server: a Flower ServerApp, its strategies and its records."""
