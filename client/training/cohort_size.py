"""Number of clients of one process that train stacked."""

TOGETHER = 32
"""Number of clients that train stacked; larger cohorts pad more and exceed the processor's cache."""

MAX_UNSTACKED = 16
"""Maximum number of clients that train one at a time by default."""


def choose_cohort(clients: int) -> int:
    """Return the number of clients that train stacked by default."""
    return 1 if clients <= MAX_UNSTACKED else TOGETHER
