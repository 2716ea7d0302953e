"""Sums over markets: how many users go with a pair of items, and with an item; what a market learns of the others.

All that travels is these sums, and only where every client's policy allows them (or under secure aggregation). They are
sparse: sorted keys a·V + b with a < b, and a number an item.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from common.arrays import Array, Arrays
from common.errors import WireError
from common.tasks.sparse_counts import SMALLEST, added, check_sparse

if TYPE_CHECKING:
    from scipy.sparse import csr_array

KEYS, VALUES, DEGREES = "pairs.keys", "pairs.values", "pairs.degrees"


def counts_of(
    pairs: NDArray[np.int64], values: NDArray[Any], degrees: NDArray[Any], items: int, exact: type = np.float32
) -> Arrays:
    """One client's counts.

    Args:
        pairs: P × 2 of catalogue numbers with a < b, each once, in order.
        values: P.
        degrees: V.
        items: V.
        exact: Type of the numbers; float64 where noise is still to come, which hides no rounding of large counts.
    """
    keys = pairs[:, 0] * items + pairs[:, 1]
    return {KEYS: keys, VALUES: values.astype(exact), DEGREES: degrees.astype(exact)}


def no_counts(items: int) -> Arrays:
    """Of a market that shares nothing; `items`: V."""
    return counts_of(np.zeros((0, 2), np.int64), np.zeros(0), np.zeros(items), items)


def includes(total: Arrays, part: Arrays) -> bool:
    """Whether `part` may be one of the counts that a total is the sum of: all its pairs are there, and as often at least."""
    place = np.searchsorted(total[KEYS], part[KEYS])
    inside = place < len(total[KEYS])
    if not inside.all() or not (total[KEYS][place] == part[KEYS]).all():
        return False
    return bool((total[VALUES][place] >= part[VALUES] - SMALLEST).all())


def add_pairs(parts: Sequence[Arrays], weights: Sequence[float] | None = None, exact: type = np.float32) -> Arrays:
    """Σ wᵢ countsᵢ, wᵢ = 1 unless given; what sums to nothing is gone. `exact` is as in `counts_of`."""
    factors = list(weights or [1.0] * len(parts))
    scaled = [w * p[VALUES].astype(np.float64) for p, w in zip(parts, factors, strict=True)]
    keys, values = added([p[KEYS] for p in parts], scaled)
    degrees = np.sum([w * p[DEGREES].astype(np.float64) for p, w in zip(parts, factors, strict=True)], axis=0)
    degrees = np.where(degrees > SMALLEST, degrees, 0)
    return {KEYS: keys, VALUES: values.astype(exact), DEGREES: degrees.astype(exact)}


def check_pairs(counts: Arrays, items: int) -> None:
    """Accept a client's counts.

    Raises:
        WireError: Other arrays, keys out of range or order, or values that are no positive numbers.
    """
    if set(counts) != {KEYS, VALUES, DEGREES} or counts[KEYS].shape != counts[VALUES].shape or counts[KEYS].ndim != 1:
        raise WireError("counts: not a list of pairs with as many values, and a number an item")
    check_sparse(counts[KEYS], counts[VALUES], items, "pairs", below=True)
    degrees = counts[DEGREES]
    if degrees.dtype != np.float32 or degrees.shape != (items,) or not (np.isfinite(degrees) & (degrees >= 0)).all():
        raise WireError("counts: not a number for every item, 0 or more")


@dataclass(frozen=True, eq=False)
class Elsewhere:
    """What other markets' counts say of a market's n items.

    Args:
        pairs: n × n, symmetric.
        degrees: n.
    """

    pairs: "csr_array[Any, tuple[int, int]]"
    degrees: NDArray[np.float32]

    @classmethod
    def nothing(cls, size: int) -> "Elsewhere":
        """Return counts of zero."""
        from scipy.sparse import csr_array

        empty = np.zeros((2, 0), np.int64)
        return cls(
            csr_array((np.zeros(0, np.float32), (empty[0], empty[1])), shape=(size, size)), np.zeros(size, np.float32)
        )

    @classmethod
    def of(cls, counts: Arrays, items: Array) -> "Elsewhere":
        """Return the summed counts of items with these numbers in the catalogue, ascending."""
        from scipy.sparse import csr_array

        size, catalogue = len(items), len(counts[DEGREES])
        place = np.full(catalogue, -1, np.int64)
        place[items] = np.arange(size)
        a, b = place[counts[KEYS] // catalogue], place[counts[KEYS] % catalogue]
        here = (a >= 0) & (b >= 0)
        ends = np.concatenate([a[here], b[here]]), np.concatenate([b[here], a[here]])
        values: NDArray[np.float32] = np.tile(counts[VALUES][here], 2)
        return cls(csr_array((values, ends), shape=(size, size)), counts[DEGREES][items])
