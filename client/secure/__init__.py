"""Client side of secure sums: pinned helpers and masked uploads."""
