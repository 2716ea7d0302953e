"""Conversion between named arrays and one float64 vector."""

from collections.abc import Iterator, Mapping

import numpy as np

from common.arrays import Array, Arrays, Floats

BLOCK = 8192
"""Numbers to which noise is added at once; a block stays in the processor's cache."""


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
