"""Counts over clients that a reason may state: released, coarse, hardly changed by noise."""

import math

LEARNT = "learnt by the federation"
"""Reason where neither own data nor a released count gives one."""

MIN_COUNT = 10
"""Smallest count that is stated."""

MAX_NOISE_SHARE = 0.25
"""Largest standard deviation of the noise, as a share of the count, at which it is stated."""


def about(count: float, noise_std: float = 0.0) -> str:
    """Return a released count rounded to tens: `about 30`; empty if it is too small or too noisy.

    Args:
        count: Sum over clients, as released.
        noise_std: Standard deviation of the noise in it.
    """
    if not math.isfinite(count) or count < MIN_COUNT or not noise_std < MAX_NOISE_SHARE * count:
        return ""
    return f"about {10 * math.floor(count / 10 + 0.5):,}"
