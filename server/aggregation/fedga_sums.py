"""The two sums of FedGA's step over a stream of clients. Pure, NumPy; memory of two models in float64.

Only sums over clients are stored, so secure aggregation can provide the same. With d_k = Δ_k/τ_k one channel carries
Σ w_k d_k and a second one Σ w_k |d_k| (algorithms.md §2.2, lines 8–10). Two further numbers are Σ w_k and Σ w_k τ_k.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from common.arrays import Array, Arrays
from common.wire.sparse_rows import split_rows

BLOCK_SIZE = 1 << 17
"""Numbers processed at a time; few enough to stay in the cache between both sums."""


@dataclass(frozen=True)
class Share:
    """Contribution of one client to a mean: Δ_k, its τ_k local steps and its weight w_k."""

    update: Arrays
    steps: int
    weight: float


@dataclass(frozen=True)
class Sums:
    """Sums over the clients of a round under the same weights, so |Δ̄| ≤ Δ' holds in every number."""

    signed: Arrays
    """Σ w_k d_k in float64."""
    absolute: Arrays
    """Σ w_k |d_k| in float64."""
    weight: float
    """Σ w_k."""
    steps: float
    """Σ w_k τ_k."""
    dtypes: dict[str, np.dtype[np.generic]]
    """Dtypes of Δ_k."""

    def mean(self) -> Arrays:
        """Return Δ̄ = τ̄·Σ p_k d_k with p_k = w_k/Σw and τ̄ = Σ p_k τ_k: the plain mean if all τ_k are equal."""
        return self._scaled(self.signed)

    def magnitude(self) -> Arrays:
        """Return Δ' = τ̄·Σ p_k |d_k|: DRA's mean of |Δ_k|."""
        return self._scaled(self.absolute)

    def _scaled(self, sums: Arrays) -> Arrays:
        factor = self.steps / self.weight / self.weight
        return {name: (a * factor).astype(self.dtypes[name]) for name, a in sums.items()}


def fold(shares: Iterable[Share], model: Arrays | None = None) -> Sums:
    """Sum the clients in the given order, with one of them in memory at a time.

    Args:
        shares: Contributions; tables may be rows with their ids (`common.wire.sparse_rows`).
        model: Arrays of the sums' shapes and dtypes; None: those of the first contribution, which has no rows.

    Raises:
        ValueError: No client, no weight, or names or shapes that differ between clients.
    """
    signed: Arrays = {}
    absolute: Arrays = {}
    dtypes: dict[str, np.dtype[np.generic]] = {}
    weight = steps = 0.0
    for share in shares:
        if not dtypes:
            signed, absolute = ({n: np.zeros(a.shape) for n, a in (model or share.update).items()} for _ in range(2))
            dtypes = {n: a.dtype for n, a in (model or share.update).items()}
        _add_share(share, signed, absolute)
        weight += share.weight
        steps += share.weight * share.steps
    if weight <= 0:
        raise ValueError("a mean needs at least one client of positive weight")
    return Sums(signed, absolute, weight, steps, dtypes)


def _add_share(share: Share, signed: Arrays, absolute: Arrays) -> None:
    parts = [*split_rows(share.update)]
    _check_shapes(parts, signed)
    for name, rows, delta in parts:
        add = _add if rows is None else partial(_add_rows, rows)
        add(delta, share.weight / share.steps, signed[name], absolute[name])


def _add(delta: Array, factor: float, signed: Array, absolute: Array) -> None:
    """Update both sums in one pass over `delta`, block by block."""
    flat, room = delta.reshape(-1), np.empty(min(BLOCK_SIZE, delta.size))
    for start in range(0, flat.size, BLOCK_SIZE):
        block = slice(start, start + BLOCK_SIZE)
        scaled = room[: flat[block].size]
        scaled[:] = flat[block]
        scaled *= factor
        signed.reshape(-1)[block] += scaled
        absolute.reshape(-1)[block] += np.abs(scaled, out=scaled)


def _add_rows(rows: Array, delta: Array, factor: float, signed: Array, absolute: Array) -> None:
    """Update both sums in the rows of these ids, which do not repeat."""
    scaled = delta.astype(np.float64) * factor
    signed[rows] += scaled
    absolute[rows] += np.abs(scaled, out=scaled)


def _check_shapes(parts: Sequence[tuple[str, Array | None, Array]], like: Arrays) -> None:
    shapes = {n: a.shape if rows is None else (len(like[n]), *a.shape[1:]) for n, rows, a in parts if n in like}
    if len(parts) != len(like) or shapes != {n: a.shape for n, a in like.items()}:
        raise ValueError("updates of one round must agree in names and shapes")
