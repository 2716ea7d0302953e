"""Counts of ordered pairs of V items, of which most are none: sorted keys a·V + b, and a number a key."""

from collections.abc import Sequence

import numpy as np

from common.arrays import Array
from common.errors import WireError

SMALLEST = 1e-3
"""What is less is rounding: a rule counts 1/20 at least; a pair 1, or .16 where what users add is bounded."""


def added(keys: Sequence[Array], values: Sequence[Array]) -> tuple[Array, Array]:
    """All keys, each once, and the sums of their values in float64; what sums to nothing is gone."""
    found, place = np.unique(np.concatenate(keys), return_inverse=True)
    sums = np.bincount(place, np.concatenate(values), minlength=len(found))
    left = sums > SMALLEST
    return found[left], sums[left]


def check_sparse(keys: Array, values: Array, items: int, what: str, *, below: bool = False) -> None:
    """Accept a client's keys, and as many values.

    Args:
        keys: Of one dimension.
        values: Likewise.
        items: V.
        what: What keys stand for, `pairs`.
        below: Whether a < b.

    Raises:
        WireError: Keys out of range or order, or values that are no positive numbers.
    """
    ordered = keys.dtype == np.int64 and bool((np.diff(keys) > 0).all())
    inside = ordered and (not len(keys) or 0 <= keys[0] <= keys[-1] < items**2)
    if not inside or (below and (keys // items >= keys % items).any()):
        raise WireError(f"counts: {what} of items that the vocabulary lacks, or not in order")
    if values.dtype != np.float32 or not (np.isfinite(values) & (values > 0)).all():
        raise WireError("counts: values that are no positive numbers")
