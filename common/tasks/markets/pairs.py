"""Users per pair of items and per item, of one or more markets, and the features of a pair.

Counts are sparse: sorted keys a·V + b with a < b, one value per key, and one degree per item.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from common.arrays import Array, Arrays, Floats32, Ints
from common.errors import WireError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

KEYS, VALUES, DEGREES = "pairs.keys", "pairs.values", "pairs.degrees"

MIN_COUNT = 1e-3
"""Threshold below which a sum is a rounding error and counts as 0.

A pair of items adds 1, or .16 if the contribution of a user is bounded.
"""


def counts_of(pairs: Ints, values: NDArray[Any], degrees: NDArray[Any], items: int) -> Arrays:
    """Return the counts of one client.

    Args:
        pairs: Pairs a < b of catalogue indices, each once, sorted, P × 2.
        values: Users of each pair, P.
        degrees: Users of each item, V.
        items: Number V of items.
    """
    keys = pairs[:, 0] * items + pairs[:, 1]
    return {KEYS: keys, VALUES: values.astype(np.float32), DEGREES: degrees.astype(np.float32)}


def no_counts(items: int) -> Arrays:
    """Return zero counts of V items."""
    return counts_of(np.zeros((0, 2), np.int64), np.zeros(0), np.zeros(items), items)


def includes(total: Arrays, part: Arrays) -> bool:
    """Return True if `part` can be a summand of `total`: no pair has a larger count than in the total."""
    nearest = np.searchsorted(total[KEYS], part[KEYS])
    inside = nearest < len(total[KEYS])
    if not inside.all() or not (total[KEYS][nearest] == part[KEYS]).all():
        return False
    return bool((total[VALUES][nearest] >= part[VALUES] - MIN_COUNT).all())


def add_pairs(members: Sequence[Arrays], weights: Sequence[float] | None = None) -> Arrays:
    """Compute Σ wᵢ countsᵢ, wᵢ = 1 by default; zero sums are left out."""
    factors = list(weights or [1.0] * len(members))
    scaled = [w * p[VALUES].astype(np.float64) for p, w in zip(members, factors, strict=True)]
    keys, index = np.unique(np.concatenate([p[KEYS] for p in members]), return_inverse=True)
    values = np.bincount(index, np.concatenate(scaled), minlength=len(keys))
    is_counted = values > MIN_COUNT
    degrees = np.sum([w * p[DEGREES].astype(np.float64) for p, w in zip(members, factors, strict=True)], axis=0)
    degrees = np.where(degrees > MIN_COUNT, degrees, 0).astype(np.float32)
    return {KEYS: keys[is_counted], VALUES: values[is_counted].astype(np.float32), DEGREES: degrees}


def check_pairs(counts: Arrays, items: int) -> None:
    """Check counts of V items.

    Raises:
        WireError: Arrays have other names or shapes, keys are out of range or order, or values are not positive.
    """
    if set(counts) != {KEYS, VALUES, DEGREES} or counts[KEYS].shape != counts[VALUES].shape or counts[KEYS].ndim != 1:
        raise WireError("counts: keys and values of pairs do not match")
    keys, values, degrees = counts[KEYS], counts[VALUES], counts[DEGREES]
    ordered = keys.dtype == np.int64 and bool((np.diff(keys) > 0).all())
    inside = ordered and (not len(keys) or 0 <= keys[0] <= keys[-1] < items**2)
    if not inside or (keys // items >= keys % items).any():
        raise WireError("counts: pairs are out of order, or of items that the vocabulary lacks")
    if values.dtype != np.float32 or not (np.isfinite(values) & (values > 0)).all():
        raise WireError("counts: values are not positive finite numbers")
    if degrees.dtype != np.float32 or degrees.shape != (items,) or not (np.isfinite(degrees) & (degrees >= 0)).all():
        raise WireError("counts: degrees are not one number of at least 0 per item")


@dataclass(frozen=True, eq=False)
class OtherMarketCounts:
    """Counts of other markets for the n items of a market.

    Args:
        pairs: Users of each pair, n × n, symmetric.
        degrees: Users of each item, n.
    """

    pairs: "csr_array[Any, tuple[int, int]]"
    degrees: Floats32

    @classmethod
    def zeros(cls, size: int) -> "OtherMarketCounts":
        """Return zero counts of n items, for runs without sums."""
        from scipy.sparse import csr_array

        ends = np.zeros((2, 0), np.int64)
        pairs = csr_array((np.zeros(0, np.float32), (ends[0], ends[1])), shape=(size, size))
        return cls(pairs, np.zeros(size, np.float32))

    @classmethod
    def of(cls, counts: Arrays, items: Array) -> "OtherMarketCounts":
        """Select from the sums the items of those catalogue indices, ascending."""
        from scipy.sparse import csr_array

        size, catalogue = len(items), len(counts[DEGREES])
        local = np.full(catalogue, -1, np.int64)
        local[items] = np.arange(size)
        a, b = local[counts[KEYS] // catalogue], local[counts[KEYS] % catalogue]
        is_sold = (a >= 0) & (b >= 0)
        ends = np.concatenate([a[is_sold], b[is_sold]]), np.concatenate([b[is_sold], a[is_sold]])
        values: Floats32 = np.tile(counts[VALUES][is_sold], 2)
        return cls(csr_array((values, ends), shape=(size, size)), counts[DEGREES][items])


GRAPH_FEATURES = (
    "walk",
    "far_walk",
    "common",
    "rare_common",
    "overlap",
    "degree",
    "strength",
    "text",
    "elsewhere",
    "neighbor_text",
)
"""Features of candidate b for a query a with neighbors.

Count-weighted walk of two hops and of three; common neighbors, plain and weighted by 1/log degree (Adamic-Adar); cosine of
the neighbor sets; degree and strength of b; text similarity; users of the pair in other markets, if they are summed; mean
text similarity of b with the neighbors of a.
"""

COLD_FEATURES = (
    "new_degree",
    "new_text",
    "new_elsewhere",
    "new_degree_elsewhere",
    "new_detour",
    "new_text_walk",
    "new_text_elsewhere",
)
"""Features of candidate b for a query a that is new in the market.

Degree of b; text similarity; from other markets: users of the pair, degree of b, and a walk of one hop there and one here. From
the ten items with texts nearest to that of a: a walk of one hop here, and their mean users with b in other markets.
"""

FEATURES = GRAPH_FEATURES + COLD_FEATURES
"""All F features; one of the two groups is zero for each query."""
