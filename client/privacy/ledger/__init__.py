"""Privacy ledger: durable record of the releases of one data set."""
