"""Everything a client sends as one vector, and back; order and shapes are those of the names."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from common.arrays import Array, Arrays


def to_vector(arrays: Mapping[str, Array]) -> NDArray[np.float64]:
    """All numbers in the order of sorted names, float64; empty for no arrays."""
    return np.concatenate([np.zeros(0), *(np.ravel(arrays[name]).astype(np.float64) for name in sorted(arrays))])


def from_vector(vector: NDArray[np.float64], like: Mapping[str, Array]) -> Arrays:
    """Inverse of `to_vector`, in the shapes and types of `like`."""
    arrays, first = {}, 0
    for name in sorted(like):
        size = like[name].size
        arrays[name] = vector[first : first + size].reshape(like[name].shape).astype(like[name].dtype)
        first += size
    return arrays
