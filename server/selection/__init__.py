"""Who is asked in a round; pure."""
