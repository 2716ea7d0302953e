"""Privacy on the client: budget, release and ledger."""
