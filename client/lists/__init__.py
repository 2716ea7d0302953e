"""Lists of recommendations: order, diversity, filters by name, and counts that a reason may state."""
