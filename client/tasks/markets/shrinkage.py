"""How far a market's own edges are believed: where pairs are few, an item's neighbours are an accident.

Measured on its own pairs, so that a market that has just begun leans on popularity and on what others counted, and a grown
one on its walk, with one model for both.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

CAUTION = 4.0
"""c, by hidden pairs of two markets that brought a tenth, three tenths and all of theirs: with c from 1 to 8 MRR@20 moves by 4
points at most, while without any doubt it is 4 to 10 lower where pairs are few."""

SURE = 0.99
"""κ from which on a query's own edges are all that counts."""

MOST_ASKED = 20_000
"""Pairs on which `reach` is measured at most, evenly spread."""


def reach(links: csr_array[Any, tuple[int, int]], pairs: NDArray[np.int64]) -> float:
    """r: share of pairs that a walk of two hops finds without their own edge, as their ends have a neighbour in common.

    One pair that it finds and one that it does not are added (Laplace), so that a handful proves nothing.

    Args:
        links: Edges as ones, n × n.
        pairs: Each edge once, E × 2.
    """
    some = pairs[:: max(1, len(pairs) // MOST_ASKED)]
    common = links[some[:, 0]].multiply(links[some[:, 1]]).sum(axis=1)
    return float((np.count_nonzero(common) + 1) / (len(some) + 2))


def shrinkage_weight(degree: NDArray[np.float32], r: float) -> NDArray[np.float32]:
    """κ = d/(d + c(1 − r)/r) of queries with d neighbours, b; 0 of those without any."""
    believed = degree * np.float32(r)
    whole = believed + np.float32(CAUTION * (1 - r))
    found: NDArray[np.float32] = np.divide(believed, whole, out=np.zeros_like(believed), where=whole > 0)
    return found
