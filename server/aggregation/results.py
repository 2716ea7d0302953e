"""Training results of a round, as a strategy sees them: single replies or sums alone, and their means. Pure, NumPy."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from common.arrays import Array, Arrays, group, mean, scale
from common.contribution import Lengths
from common.errors import ConfigError
from common.wire.messages import TrainReply
from common.wire.sparse_rows import split_rows


def mean_update(updates: Iterable[Arrays], steps: Sequence[int], weights: Sequence[float]) -> Arrays:
    """Return Δ̄ = τ̄ · Σ p_k Δ_k/τ_k with τ̄ = Σ p_k τ_k; exactly Σ p_k Δ_k if all τ_k are equal."""
    if len(set(steps)) == 1:
        return mean(updates, weights)
    total = sum(weights)
    mean_steps = sum(w * t for w, t in zip(weights, steps, strict=True)) / total
    per_step = (scale(u, mean_steps / t) for u, t in zip(updates, steps, strict=True))
    return mean(per_step, weights)


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


Rows = Mapping[str, NDArray[np.integer]]
"""Table -> ids of the rows that were sent; a missing table was sent in full."""


def rescale_rows(updates: Sequence[Arrays], rows: Sequence[Rows], weights: Sequence[float]) -> list[Arrays]:
    """Return updates whose weighted mean is, per row, the weighted mean over the row's senders.

    Row i of Δ_k is multiplied by W/W_i, with W = Σ_k w_k and W_i the same sum over the senders of row i. Methods need no
    change.

    Args:
        updates: Δ_k with full tables (n × d), zero in rows that were not sent.
        rows: Ids of the sent rows.
        weights: w_k.
    """
    total, sent = float(sum(weights)), {name for ids in rows for name in ids}
    factors = {}
    for name in sorted(sent):
        weight = np.zeros(len(updates[0][name]))
        for ids, w in zip(rows, weights, strict=True):
            weight[ids.get(name, slice(None))] += w
        factors[name] = np.divide(total, weight, out=np.zeros_like(weight), where=weight > 0)[:, None]
    return [{n: (a * factors[n]).astype(a.dtype) if n in factors else a for n, a in u.items()} for u in updates]


Rate = Callable[[str], float]
"""Learning rate of a parameter, by its name."""

Load = Callable[[], Arrays]
"""Returns stored arrays; each call reads those on disk anew."""


@dataclass(frozen=True)
class Reply:
    """Valid training reply of a client.

    Args:
        client: Name of the client.
        weight: Weight in means.
        train: Reply with full tables, or with their gathered rows in runs whose local steps gather rows.
        rows: Row ids in the reply, in runs whose clients send them; empty if missing rows are zeros.
        lengths: Norms of its arrays.
        stored: Arrays of `train` by field, which then has none itself; None if `train` has them.
    """

    client: str
    weight: float
    train: TrainReply
    rows: Rows = field(default_factory=dict)
    lengths: Lengths = field(default_factory=dict)
    stored: Mapping[str, Load] | None = None

    @property
    def update(self) -> Arrays:
        """Δ_k; a stored one is read anew."""
        return self.train.update if self.stored is None else self.stored["update"]()

    @property
    def gradient(self) -> Arrays:
        """s_k; a stored one is read anew."""
        return self.train.gradient if self.stored is None else self.stored["gradient"]()


class Collected(Protocol):
    """Training results of a round. A method with the capability `sum_only` uses all but `replies`."""

    @property
    def names(self) -> list[str]:
        """Names of the clients, in order."""

    @property
    def steps(self) -> Mapping[str, int]:
        """Client -> number τ_k of its local steps."""

    @property
    def replies(self) -> list[Reply]:
        """Single replies, in the order of client names; secure sums have none."""

    def mean_update(self) -> Arrays:
        """Return Δ̄, the weighted mean of the updates, corrected for different numbers of local steps."""

    def mean_gradient(self) -> Arrays:
        """Return s̄, the weighted mean of the gradients that clients send."""

    def mean_direction(self, rate: Rate) -> Arrays:
        """Return the weighted mean of Δ_k/(ητ_k), with η the `rate` of a parameter."""

    def mean_and_magnitude(self) -> tuple[Arrays, Arrays]:
        """Return Δ̄ and Δ', the weighted mean of |Δ_k|, over the same weights: |Δ̄| ≤ Δ' in every number."""


@dataclass(frozen=True)
class Replies:
    """Single replies of a round.

    Args:
        replies: Replies in the order of client names.
        per_step: True if means are of updates per local step.
        tables: Model whose tables the updates may hold as rows; None if all updates have full tables.
    """

    replies: list[Reply]
    per_step: bool = True
    tables: Arrays | None = None

    @property
    def names(self) -> list[str]:
        """Names of the clients, in order."""
        return [reply.client for reply in self.replies]

    @property
    def steps(self) -> Mapping[str, int]:
        """Client -> number τ_k of its local steps."""
        return {reply.client: reply.train.steps for reply in self.replies}

    def mean_update(self) -> Arrays:
        """Return Δ̄."""
        if self.tables is not None:
            return self._sums().mean()
        updates = (reply.update for reply in self.replies)
        return mean_update(updates, [*self.steps.values()], self._weights) if self.per_step else self._mean(updates)

    def mean_gradient(self) -> Arrays:
        """Return s̄."""
        return self._mean(reply.gradient for reply in self.replies)

    def mean_direction(self, rate: Rate) -> Arrays:
        """Return the weighted mean of Δ_k/(ητ_k)."""
        return self._mean(
            {n: (u / (rate(n) * reply.train.steps)).astype(u.dtype) for n, u in reply.update.items()}
            for reply in self.replies
        )

    def mean_and_magnitude(self) -> tuple[Arrays, Arrays]:
        """Return Δ̄ and Δ'."""
        sums = self._sums()
        return sums.mean(), sums.magnitude()

    def _sums(self) -> Sums:
        shares = (Share(reply.update, reply.train.steps, reply.weight) for reply in self.replies)
        return fold(shares, self.tables)

    @property
    def _weights(self) -> list[float]:
        return [reply.weight for reply in self.replies]

    def _mean(self, members: Iterable[Arrays]) -> Arrays:
        return mean(members, self._weights)


@dataclass(frozen=True)
class Opened:
    """Means over the clients of a secure sum; no client's own reply is known.

    Args:
        names: Names of the clients, in order.
        steps: Client -> number τ_k of its local steps.
        means: Means of the blocks: `update/name` of (τ/τ_k)·Δ_k, or of Δ_k if means are not per step, and `gradient/name`,
            `absolute/name` if the method needs them.
        configured_steps: τ, the configured number of local steps.
        per_step: True if means are of updates per local step.
    """

    names: list[str]
    steps: Mapping[str, int]
    means: Arrays
    configured_steps: int
    per_step: bool = True

    @property
    def replies(self) -> list[Reply]:
        """Single replies, which a sum does not have.

        Raises:
            ConfigError: Always; methods without the capability `sum_only` are refused before a run.
        """
        raise ConfigError("this method needs single replies; set privacy.trust=local")

    def mean_update(self) -> Arrays:
        """Return Δ̄."""
        return scale(group("update", self.means), self._mean_steps / self.configured_steps)

    def mean_gradient(self) -> Arrays:
        """Return s̄."""
        return group("gradient", self.means)

    def mean_direction(self, rate: Rate) -> Arrays:
        """Return the mean of Δ_k/(ητ_k)."""
        update = group("update", self.means)
        return {name: (u / (rate(name) * self.configured_steps)).astype(u.dtype) for name, u in update.items()}

    def mean_and_magnitude(self) -> tuple[Arrays, Arrays]:
        """Return Δ̄ and Δ'."""
        return self.mean_update(), scale(group("absolute", self.means), self._mean_steps / self.configured_steps)

    @property
    def _mean_steps(self) -> float:
        """Mean τ̄ of the local steps; τ if means are not per step."""
        return sum(self.steps.values()) / len(self.steps) if self.per_step and self.steps else self.configured_steps
