"""Conversion between named arrays and one float64 vector, and clipping of its norm."""

from collections.abc import Iterator, Mapping
from typing import Literal

import numpy as np

from common.arrays import Array, Arrays, Floats
from common.errors import RefusedError

BLOCK = 8192
"""Numbers to which noise is added at once; a block stays in the processor's cache."""

RESIDUE_BITS = 52
"""Bits of numbers mod 2ᵏ in a float64, all of which it holds exactly."""

Sign = Literal["signed", "positive"]
"""Sign of a vector's numbers: `positive` if none is negative."""


def to_vector(arrays: Mapping[str, Array]) -> Floats:
    """Concatenate all numbers in the order of sorted names, as float64; empty for no arrays."""
    return np.concatenate([np.zeros(0), *(np.ravel(arrays[name]).astype(np.float64) for name in sorted(arrays))])


def from_vector(vector: Floats, like: Mapping[str, Array]) -> Arrays:
    """Invert `to_vector`; shapes and types are those of `like`."""
    arrays, first = {}, 0
    for name in sorted(like):
        size = like[name].size
        arrays[name] = vector[first : first + size].reshape(like[name].shape).astype(like[name].dtype)
        first += size
    return arrays


def blocks(vector: Floats) -> Iterator[Floats]:
    """Yield consecutive views of the vector, of at most `BLOCK` numbers each."""
    for start in range(0, vector.size, BLOCK):
        yield vector[start : start + BLOCK]


Order = Literal[1, 2]

_INSIDE = 1 - 1e-12
"""Factor that keeps a clipped vector inside the ball, whatever the rounding of its norm."""

_SAFE = (1e-140, 1e140)
"""Range of lengths whose squares neither underflow nor overflow."""


def clip(vector: Floats, largest: float, order: Order, normalise: bool) -> Floats:
    """Scale a vector to an L1 or L2 norm of at most `largest`.

    With `normalise`, shorter vectors are scaled up to that norm.

    A zero vector stays zero in both cases: it is within the bound, so the sensitivity 2C holds.

    Raises:
        RefusedError: The vector holds NaN or infinity, or is not one-dimensional.
    """
    vector = np.asarray(vector, np.float64)
    if vector.ndim != 1:
        raise RefusedError(f"privacy: an array of {vector.ndim} dimensions cannot be released; expected a vector")
    scale, length = _length(vector, order)
    if length == 0 or (not normalise and length <= largest * _INSIDE / scale):
        return vector.copy()
    return (vector / scale if scale != 1 else vector) * (largest * _INSIDE / length)


def _length(vector: Floats, order: Order) -> tuple[float, float]:
    """Return a scale s and ‖x/s‖; s = 1 where that can be computed, else the largest |xᵢ|.

    Raises:
        RefusedError: The vector holds NaN or infinity.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        length = float(np.abs(vector).sum()) if order == 1 else float(np.sqrt(vector @ vector))
    if _SAFE[0] < length < _SAFE[1]:
        return 1.0, length
    biggest = float(np.abs(vector).max(initial=0.0))
    if not np.isfinite(biggest):
        raise RefusedError(
            "release refused: the vector holds NaN or infinite numbers and nothing was sent; lower lr or set clip-norm"
        )
    return (biggest, float(np.linalg.norm(vector / biggest, order))) if biggest else (1.0, 0.0)
