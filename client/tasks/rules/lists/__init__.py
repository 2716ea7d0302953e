"""Lists of rules for a home: possible, without contradictions, with a reason each."""
