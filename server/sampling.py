"""Uniform cohorts: pure functions of (seed, round, names)."""

import math
from collections.abc import Collection

import numpy as np


def cohort_size(clients: int, share: float, at_least: int) -> int:
    """Return ⌈share·K⌉ for K clients, at least `at_least`, at most all."""
    return min(clients, max(at_least, math.ceil(share * clients)))


def cohort(
    seed: int, round_number: int, clients: Collection[str], share: float, at_least: int, *stream: int
) -> list[str]:
    """Draw ⌈share·K⌉ of the K clients (at least `at_least`, at most all), sorted by name.

    The draw depends on seed, round, names and `stream` only: not on node ids, arrival order or clocks.
    """
    names = sorted(clients)
    size = cohort_size(len(names), share, at_least)
    if size == len(names):
        return names
    rng = np.random.default_rng([seed, round_number, *stream])
    return sorted(rng.choice(names, size=size, replace=False).tolist())
