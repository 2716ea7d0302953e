"""Shrinkage weight of a market's own edges, estimated on its own pairs.

In a market with few pairs the neighbors of an item are random. Its ranking then relies on popularity and on counts of other
markets; in a large market it relies on the walk. One model serves both.
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from common.arrays import Floats32, Ints

SHRINKAGE_STRENGTH = 4.0
"""Constant c of the shrinkage weight.

Chosen on held-out pairs of two markets with 10 %, 30 % and 100 % of their pairs. For c from 1 to 8 MRR@20 changes by at most
4 points; without shrinkage it is 4 to 10 points lower if pairs are few.
"""

FULL_WEIGHT = 0.99
"""Shrinkage weight κ from which a query uses its own edges only."""

MAX_REACH_PAIRS = 20_000
"""Maximum number of pairs on which `reach` is estimated, evenly spaced."""


def reach(links: csr_array[Any, tuple[int, int]], pairs: Ints) -> float:
    """Estimate r, the share of pairs whose ends have a common neighbor, with Laplace smoothing.

    A walk of two hops finds such a pair without its own edge. Smoothing adds one pair of each kind.

    Args:
        links: Edges as ones, n × n.
        pairs: Edges, each once, E × 2.
    """
    some = pairs[:: max(1, len(pairs) // MAX_REACH_PAIRS)]
    common = links[some[:, 0]].multiply(links[some[:, 1]]).sum(axis=1)
    return float((np.count_nonzero(common) + 1) / (len(some) + 2))


def shrinkage_weight(degree: Floats32, r: float) -> Floats32:
    """Compute κ = d/(d + c(1 − r)/r) of queries with d neighbors, b; 0 without neighbors."""
    shrunk = degree * np.float32(r)
    whole = shrunk + np.float32(SHRINKAGE_STRENGTH * (1 - r))
    weight: Floats32 = np.divide(shrunk, whole, out=np.zeros_like(shrunk), where=whole > 0)
    return weight
