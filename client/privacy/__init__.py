"""Privacy on the client: budget, release and ledger; crashes, copies and renamed files cannot hide what was spent."""
