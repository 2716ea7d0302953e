"""Named arrays and operations on them. Every function is pure; no argument is changed.

A model, an update and a control variate are all `Arrays`: a mapping from parameter name to array. Binary operations
require the same names on both sides and keep the left side's order.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add as add_numbers
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from common.errors import WireError

Array = NDArray[Any]
Arrays = dict[str, Array]
Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
T = TypeVar("T")


def zeros_like(arrays: Mapping[str, Array]) -> Arrays:
    """Return zeros of the same names, shapes and dtypes."""
    return {name: np.zeros_like(a) for name, a in arrays.items()}


def add(left: Mapping[str, Array], right: Mapping[str, Array]) -> Arrays:
    """Return left + right, element by element."""
    return {name: a + right[name] for name, a in _same_names(left, right).items()}


def sub(left: Mapping[str, Array], right: Mapping[str, Array]) -> Arrays:
    """Return left − right, element by element."""
    return {name: a - right[name] for name, a in _same_names(left, right).items()}


def scale(arrays: Mapping[str, Array], factor: float) -> Arrays:
    """Return factor · arrays, element by element, in each array's own dtype."""
    return {name: (a * factor).astype(a.dtype) for name, a in arrays.items()}


def total_of(values: Iterable[float]) -> float:
    """Return the sum from left to right: the same bits on every Python.

    `sum` of floats has others from Python 3.12 on.
    """
    return reduce(add_numbers, values, 0.0)


def norm(arrays: Mapping[str, Array]) -> float:
    """Return the L2 norm of all arrays read as one vector; 0 without arrays."""
    return math.sqrt(total_of(float(np.sum(np.square(a, dtype=np.float64))) for a in arrays.values()))


def mean(members: Iterable[Mapping[str, Array]], weights: Sequence[float]) -> Arrays:
    """Return the weighted mean Σ wᵢ aᵢ / Σ wᵢ, summed in float64 in the given order, one member at a time.

    Raises:
        ValueError: `members` is empty, or the weights sum to zero or less.
    """
    total = total_of(weights)
    if total <= 0:
        raise ValueError("a mean needs at least one member of positive weight")
    result: Arrays = {}
    weighted: Arrays = {}
    dtypes: dict[str, np.dtype[Any]] = {}
    for member, weight in zip(members, weights, strict=True):
        if not dtypes:
            result = {name: np.zeros(a.shape, np.float64) for name, a in member.items()}
            weighted = {name: np.empty(a.shape, np.float64) for name, a in member.items()}
            dtypes = {name: a.dtype for name, a in member.items()}
        for name in _same_names(result, member):
            np.multiply(member[name], weight / total, out=weighted[name], dtype=np.float64)
            result[name] += weighted[name]
    return {name: a.astype(dtypes[name]) for name, a in result.items()}


def add_prefix(prefix: str, arrays: Mapping[str, Array]) -> Arrays:
    """Return the same arrays under the names `prefix/name`."""
    return {f"{prefix}/{name}": a for name, a in arrays.items()}


def group(prefix: str, named: Mapping[str, T]) -> dict[str, T]:
    """Return the entries whose name starts with `prefix/`, without that prefix; inverse of `add_prefix`."""
    start = f"{prefix}/"
    return {name.removeprefix(start): value for name, value in named.items() if name.startswith(start)}


def all_finite(arrays: Mapping[str, Array]) -> bool:
    """Return True if no array contains NaN or infinity."""
    return all(bool(np.isfinite(a).all()) for a in arrays.values() if a.dtype.kind == "f")


def check_like(arrays: Mapping[str, Array], template: Mapping[str, Array], what: str) -> None:
    """Check that names, shapes and dtypes equal those of `template` and that every number is finite.

    Raises:
        WireError: An array is missing, unknown, of another shape or dtype, or non-finite.
    """
    if set(arrays) != set(template):
        raise WireError(f"{what}: arrays {sorted(set(arrays) ^ set(template))} are missing or unknown")
    for name in template:
        a = arrays[name]
        if a.shape != template[name].shape or a.dtype != template[name].dtype:
            expected = f"{template[name].dtype}{list(template[name].shape)}"
            raise WireError(f"{what}: array '{name}' is {a.dtype}{list(a.shape)}, expected {expected}")
    if not all_finite(arrays):
        raise WireError(f"{what}: non-finite numbers (NaN or infinity)")


def sha256(arrays: Mapping[str, Array]) -> str:
    """Return a fingerprint of names, dtypes, shapes and values; the order of the mapping has no effect."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        a = arrays[name]
        digest.update(f"{name}:{a.dtype.str}:{a.shape}".encode())
        digest.update(a.tobytes())
    return digest.hexdigest()


def _same_names(left: Mapping[str, Array], right: Mapping[str, Array]) -> Mapping[str, Array]:
    if left.keys() != right.keys():
        raise ValueError(f"arrays differ in names: {sorted(left.keys() ^ right.keys())}")
    return left
