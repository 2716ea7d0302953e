"""Owner's view on a client: control files, journal entries and log."""
