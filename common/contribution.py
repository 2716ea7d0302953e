"""Contributions of clients to a round: sums of their replies, and their lengths. Pure, NumPy."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from common.arrays import Array, Arrays, Floats, add_prefix, group
from common.wire.messages import TrainReply


class Folded:
    """Weighted sums in float64 over clients, apart for each number of local steps.

    Attributes:
        updates: Steps τ -> Σ w_k Δ_k over the clients with τ_k = τ.
        magnitudes: The same of |Δ_k|; empty unless the method needs it.
        gradient: Σ w_k s_k over all clients; empty unless they send s_k.
        weights: Steps τ -> Σ w_k.
        dtypes: Dtype of each parameter.
    """

    def __init__(self) -> None:
        self.updates: dict[int, Arrays] = {}
        self.magnitudes: dict[int, Arrays] = {}
        self.gradient: Arrays = {}
        self.weights: dict[int, float] = {}
        self.dtypes: dict[str, np.dtype[np.generic]] = {}

    def add(
        self, steps: int, weights: Floats, update: Arrays, gradient: Arrays, *, with_magnitude: bool = False
    ) -> None:
        """Add K clients that made the same number of steps.

        Args:
            steps: Their number of local steps.
            weights: Weight of each client, (K,); one of weight 0 does not change any sum.
            update: Δ_k, K × ….
            gradient: s_k, K × …; empty if the method sends none.
            with_magnitude: True if the method needs the sum of |Δ_k|.
        """
        self.dtypes |= {name: a.dtype for name, a in update.items()}
        _add(self.updates.setdefault(steps, {}), _sum(weights, update))
        if with_magnitude:
            _add(self.magnitudes.setdefault(steps, {}), _sum(weights, {n: np.abs(a) for n, a in update.items()}))
        _add(self.gradient, _sum(weights, gradient))
        self.weights[steps] = self.weights.get(steps, 0.0) + float(weights.sum())

    def merge(self, other: "Folded") -> None:
        """Add the clients of another sum."""
        self.dtypes |= other.dtypes
        for own, added in ((self.updates, other.updates), (self.magnitudes, other.magnitudes)):
            for steps, arrays in added.items():
                _add(own.setdefault(steps, {}), arrays)
        _add(self.gradient, other.gradient)
        for steps, weight in other.weights.items():
            self.weights[steps] = self.weights.get(steps, 0.0) + weight

    def to_arrays(self) -> Arrays:
        """Return everything by name, in the form that `from_arrays` reads."""
        arrays = add_prefix("gradient", self.gradient)
        arrays |= {f"weights/{steps}": np.array(weight) for steps, weight in self.weights.items()}
        arrays |= {f"dtypes/{name}": np.zeros(0, dtype) for name, dtype in self.dtypes.items()}
        for kind, by_steps in (("updates", self.updates), ("magnitudes", self.magnitudes)):
            for steps, named in by_steps.items():
                arrays |= add_prefix(f"{kind}/{steps}", named)
        return arrays

    @staticmethod
    def from_arrays(arrays: Arrays) -> "Folded":
        """Return the sums; inverse of `to_arrays`.

        Raises:
            ValueError: A number of steps or a weight is no number.
        """
        sums = Folded()
        sums.gradient = group("gradient", arrays)
        sums.dtypes = {name: a.dtype for name, a in group("dtypes", arrays).items()}
        for text, weight in group("weights", arrays).items():
            steps = int(text)
            sums.weights[steps] = weight.item()
            sums.updates[steps] = group(f"updates/{steps}", arrays)
            if magnitudes := group(f"magnitudes/{steps}", arrays):
                sums.magnitudes[steps] = magnitudes
        return sums


@dataclass(frozen=True, eq=False)
class ClientBlock:
    """Clients whose replies are one sum.

    Args:
        number: Place of the block in its round.
        clients: Their names.
        sums: The sum of their replies.
    """

    number: int
    clients: tuple[str, ...]
    sums: Folded


@dataclass(frozen=True)
class BlockReply(TrainReply):
    """Reply of a client of a block; its arrays are in the block's sums alone."""

    block: ClientBlock = field(default_factory=lambda: ClientBlock(0, (), Folded()))
    lengths: Mapping[str, float] = field(default_factory=dict)
    """`update` and `gradient` -> L2 norm."""


def _sum(weights: Floats, stacked: Arrays) -> Arrays:
    with np.errstate(over="ignore", invalid="ignore"):
        return {n: (weights @ a.reshape(len(a), -1)).reshape(a.shape[1:]) for n, a in stacked.items() if len(a)}


def _add(sums: Arrays, added: Mapping[str, Array]) -> None:
    for name, a in added.items():
        if name in sums:
            sums[name] += a
        else:
            sums[name] = np.array(a, np.float64)


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
