"""Lengths of replies, and those among them that a server may leave out. Pure, NumPy."""

import math
import statistics
from collections.abc import Sequence

import numpy as np

from common.arrays import Floats

MAX_PLAUSIBLE = 1e12
"""Largest accepted magnitude of a loss, metric or weight; sums of squares and products stay finite."""

DOUBT = 0.5
"""Share of the bound on lengths from which on the server judges a single reply.

The median of the round, to which the bound refers, is not there yet.
"""

Lengths = dict[str, float]
"""`update` and `gradient` -> L2 norm."""


def typical(lengths: Sequence[Lengths]) -> Lengths:
    """Return the median of each kind over positive lengths; a kind without any is left out."""
    kinds = dict.fromkeys(kind for one in lengths for kind in one)
    return {kind: statistics.median(found) for kind in kinds if (found := positive(lengths, kind))}


def positive(lengths: Sequence[Lengths], kind: str) -> list[float]:
    """Return the lengths of a kind that are above 0, ascending."""
    return sorted(one[kind] for one in lengths if one.get(kind, 0) > 0)


def rows_of_lengths(lengths: dict[str, Floats]) -> list[Lengths]:
    """Return the lengths of each client, from those of each kind."""
    return [dict(zip(lengths, map(float, row), strict=True)) for row in zip(*lengths.values(), strict=True)]


def find_doubtful(reference: Lengths, limits: Floats, lengths: dict[str, Floats], losses: Floats) -> list[int]:
    """Return the clients of a block whose reply the server may leave out.

    Args:
        reference: Typical lengths of the last round; a kind without one is compared within the block.
        limits: Bound on each client's length, as a multiple of the typical one; 0: none.
        lengths: Kind -> length of each client's reply, (K,).
        losses: Loss of each client, (K,).
    """
    middle = {**typical(rows_of_lengths(lengths)), **reference}
    trusted = np.abs(losses) <= MAX_PLAUSIBLE
    for kind, length in lengths.items():
        most = np.where(limits > 0, DOUBT * limits * middle.get(kind, 0.0), math.inf)
        trusted &= np.isfinite(length) & (length <= most)
    return np.flatnonzero(~trusted).tolist()
