"""Federation inside one process: grid, clients, blocks of clients, their state and ledgers."""
