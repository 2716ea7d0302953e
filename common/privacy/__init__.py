"""Differential privacy as pure maths: mechanisms, accounts and what they cost; state and policy live in `client.privacy`."""
