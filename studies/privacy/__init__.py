"""Study of privacy noise in all tasks: quality of the default model against ε, and its floor."""
