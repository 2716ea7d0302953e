"""Named arrays and the few things one does with them; pure, never in place.

A model, an update, a control variate are all `Arrays`: a mapping from parameter name to array. Binary operations ask for
the same names on both sides and keep the left side's order.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from common.errors import WireError

Array = NDArray[Any]
Arrays = dict[str, Array]
T = TypeVar("T")


def zeros_like(arrays: Mapping[str, Array]) -> Arrays:
    """Zeros of the same names, shapes and types."""
    return {name: np.zeros_like(a) for name, a in arrays.items()}


def add(left: Mapping[str, Array], right: Mapping[str, Array]) -> Arrays:
    """Element-wise left + right."""
    return {name: a + right[name] for name, a in _same_names(left, right).items()}


def sub(left: Mapping[str, Array], right: Mapping[str, Array]) -> Arrays:
    """Element-wise left − right."""
    return {name: a - right[name] for name, a in _same_names(left, right).items()}


def scale(arrays: Mapping[str, Array], factor: float) -> Arrays:
    """Element-wise factor · arrays, in the arrays' own types."""
    return {name: (a * factor).astype(a.dtype) for name, a in arrays.items()}


def norm(arrays: Mapping[str, Array]) -> float:
    """Euclidean norm of all arrays read as one vector; 0 for no arrays."""
    return float(np.sqrt(sum(float(np.sum(np.square(a, dtype=np.float64))) for a in arrays.values())))


def mean(members: Sequence[Mapping[str, Array]], weights: Sequence[float]) -> Arrays:
    """Weighted mean Σ wᵢ aᵢ / Σ wᵢ, summed in float64 in the order given.

    Raises:
        ValueError: No member, or the weights sum to zero.
    """
    total = float(sum(weights))
    if not members or total <= 0:
        raise ValueError("a mean needs at least one member of positive weight")
    first = members[0]
    result = {name: np.zeros(a.shape, np.float64) for name, a in first.items()}
    for member, weight in zip(members, weights, strict=True):
        for name in _same_names(first, member):
            result[name] += (weight / total) * member[name].astype(np.float64)
    return {name: result[name].astype(a.dtype) for name, a in first.items()}


def prefixed(prefix: str, arrays: Mapping[str, Array]) -> Arrays:
    """The same arrays under `prefix/name`."""
    return {f"{prefix}/{name}": a for name, a in arrays.items()}


def group(prefix: str, named: Mapping[str, T]) -> dict[str, T]:
    """The arrays, or numbers, whose name starts with `prefix/`, without it; inverse of `prefixed`."""
    start = f"{prefix}/"
    return {name.removeprefix(start): value for name, value in named.items() if name.startswith(start)}


def all_finite(arrays: Mapping[str, Array]) -> bool:
    """Whether no array holds NaN or infinity."""
    return all(bool(np.isfinite(a).all()) for a in arrays.values() if a.dtype.kind == "f")


def check_like(arrays: Mapping[str, Array], template: Mapping[str, Array], what: str) -> None:
    """Check that names, shapes and types are those of `template` and that every number is finite.

    Raises:
        WireError: Naming `what` and the first array that differs.
    """
    if set(arrays) != set(template):
        raise WireError(f"{what}: arrays {sorted(set(arrays) ^ set(template))} are missing or unknown")
    for name in template:
        a = arrays[name]
        if a.shape != template[name].shape or a.dtype != template[name].dtype:
            expected = f"{template[name].dtype}{list(template[name].shape)}"
            raise WireError(f"{what}: array '{name}' is {a.dtype}{list(a.shape)}, expected {expected}")
    if not all_finite(arrays):
        raise WireError(f"{what}: NaN or infinite numbers")


def sha256(arrays: Mapping[str, Array]) -> str:
    """Fingerprint of names, types, shapes and values; independent of the mapping's order."""
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
