"""Attackers among the clients: what the rules of aggregation are worth, and who is named."""
