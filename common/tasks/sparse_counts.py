"""Sparse counts of ordered pairs (a, b) of V items: sorted keys a·V + b and one value per key."""

from collections.abc import Sequence

import numpy as np

from common.arrays import Array
from common.errors import WireError

MIN_COUNT = 1e-3
"""Threshold below which a sum is a rounding error and counts as 0.

A sequential rule adds at least 1/20; a pair of items adds 1, or .16 if the contribution of a user is bounded.
"""


def sum_by_key(keys: Sequence[Array], values: Sequence[Array]) -> tuple[Array, Array]:
    """Return each key once, ascending, with the float64 sum of its values; zero sums are left out."""
    keys_once, place = np.unique(np.concatenate(keys), return_inverse=True)
    sums = np.bincount(place, np.concatenate(values), minlength=len(keys_once))
    is_counted = sums > MIN_COUNT
    return keys_once[is_counted], sums[is_counted]


def check_sparse(keys: Array, values: Array, items: int, noun: str, *, below: bool = False) -> None:
    """Check the keys and values of a client's counts.

    Args:
        keys: Keys a·V + b, 1-D.
        values: Counts, 1-D, as many as keys.
        items: Number V of items.
        noun: Noun of a key in messages, such as `pairs`.
        below: True if every key must have a < b.

    Raises:
        WireError: Keys are out of range or order, or values are not positive finite float32.
    """
    ordered = keys.dtype == np.int64 and bool((np.diff(keys) > 0).all())
    inside = ordered and (not len(keys) or 0 <= keys[0] <= keys[-1] < items**2)
    if not inside or (below and (keys // items >= keys % items).any()):
        raise WireError(f"counts: {noun} are out of order, or of items that the vocabulary lacks")
    if values.dtype != np.float32 or not (np.isfinite(values) & (values > 0)).all():
        raise WireError("counts: values are not positive finite numbers")
