"""Names of the history features of an item; importing them must not import torch."""

FEATURES = ("own_frequency", "own_bigram", "session_recency", "last_item", "shared_rules")
"""The F features of an item.

log(1 + visits); log(1 + visits right after the last item); .8^(clicks ago) if the session has it; 1 if it is the last
item; log(1 + summed sequential rules) if counts are shared.
"""
