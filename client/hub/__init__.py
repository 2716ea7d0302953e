"""Hub: one node that answers for several clients."""
