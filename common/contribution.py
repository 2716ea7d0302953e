"""Contribution: results of one client or of many, as named sums that add up. Pure, NumPy.

Every training result is a contribution: that of one client, of a block of simulated clients, of a hub, or of an opened secure
sum. A method reads means of the total. With weights w_k, steps τ_k, p_k = w_k/Σw and τ̄ = Σ p_k τ_k, the mean update is
Δ̄ = τ̄·Σ p_k Δ_k/τ_k (algorithms.md §1.4), which is Σ p_k Δ_k if all τ_k are equal. Methods without rounds add statistics
under names of their own and solve for the model.
"""

import math
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from common.arrays import Array, Arrays, Floats, add_prefix, group, total_of
from common.errors import ConfigError
from common.wire.messages import TrainReply
from common.wire.sparse_rows import split_rows

UPDATE, MAGNITUDE, GRADIENT = "update", "magnitude", "gradient"
"""Kinds of sums of a training round: Σ w_k Δ_k/τ_k, Σ w_k |Δ_k|/τ_k and Σ w_k s_k."""

BLOCK_SIZE = 1 << 17
"""Numbers processed at a time; few enough to stay in the cache between both sums."""

MAX_PLAUSIBLE = 1e12
"""Largest accepted magnitude of a loss, metric or weight; sums of squares and products stay finite."""

DOUBT = 0.5
"""Share of the bound on lengths from which on the server judges a single reply.

The median of the round, to which the bound refers, is not there yet.
"""

Lengths = dict[str, float]
"""`update` and `gradient` -> L2 norm."""

Rate = Callable[[str], float]
"""Learning rate of a parameter, by its name."""


@dataclass(frozen=True)
class Member:
    """Client in a contribution.

    Args:
        name: Name of the client.
        weight: Weight w_k in means.
        steps: Number τ_k of its local steps.
        loss: Mean training loss; NaN if it is not known.
        lengths: Norms of its update and gradient; empty if they are not known.
    """

    name: str
    weight: float = 1.0
    steps: int = 1
    loss: float = math.nan
    lengths: Lengths = field(default_factory=dict)


class SingleReply(Protocol):
    """Reply of one client, where a method needs more than sums."""

    @property
    def client(self) -> str:
        """Name of the client."""

    @property
    def weight(self) -> float:
        """Weight w_k in means."""

    @property
    def member(self) -> Member:
        """The client in a contribution."""

    @property
    def update(self) -> Arrays:
        """Δ_k."""

    @property
    def gradient(self) -> Arrays:
        """s_k; empty if the method sends none."""


class Contribution:
    """Sums in float64 over members; contributions add.

    Args:
        per_step: True if updates are summed per local step, Δ_k/τ_k; False if each update solves a problem of its own.
        magnitude: True if Σ w_k |Δ_k|/τ_k is summed too.
        tables: Arrays whose tables an update may hold as rows with ids; None if all updates have full tables.

    Attributes:
        members: Members in the order in which they were added.
        sums: Kind -> named sums.
        dtypes: Dtype of each parameter.
        weight: Σ w_k.
        weighted_steps: Σ w_k τ_k.
    """

    def __init__(self, *, per_step: bool = True, magnitude: bool = False, tables: Arrays | None = None) -> None:
        self._per_step, self._magnitude, self._tables = per_step, magnitude, tables
        self.members: list[Member] = []
        self.sums: dict[str, Arrays] = {}
        self.dtypes: dict[str, np.dtype[Any]] = {}
        self.weight = self.weighted_steps = 0.0
        self._singles: Sequence[SingleReply] | None = None
        self._vectors: dict[str, Floats] = {}
        """Kind -> vector whose views are the sums of the arrays in `_names`."""
        self._names: dict[str, list[str]] = {}

    def __bool__(self) -> bool:
        """Return True if it has members."""
        return bool(self.members)

    @property
    def names(self) -> list[str]:
        """Names of the members, ascending."""
        return sorted(member.name for member in self.members)

    @property
    def steps(self) -> dict[str, int]:
        """Client -> number τ_k of its local steps."""
        return {member.name: member.steps for member in self.members}

    @property
    def replies(self) -> Sequence["SingleReply"]:
        """Single replies of the members, in the order of their names.

        Raises:
            ConfigError: The total has sums alone, as in secure sums and for methods with the capability `sum_only`.
        """
        if self._singles is None:
            raise ConfigError(
                "this method needs single replies, and this round has sums alone; set privacy.trust=local"
            )
        return self._singles

    def add(self, member: Member, update: Arrays, gradient: Arrays | None = None) -> None:
        """Add one client; its arrays are read once.

        Args:
            member: The client.
            update: Δ_k; tables may be rows with their ids if `tables` is set.
            gradient: s_k; None or empty if the method sends none.

        Raises:
            ValueError: Names or shapes differ from those of earlier members.
        """
        split = [*split_rows(update)]
        whole = {name: delta for name, rows, delta in split if rows is None}
        if UPDATE not in self.sums:
            like = self._tables or update
            self.dtypes |= {name: a.dtype for name, a in like.items()}
            for kind in (UPDATE, MAGNITUDE) if self._magnitude else (UPDATE,):
                self._lay_out(kind, like, whole)
        _check_shapes(split, self.sums[UPDATE])
        factor, sizes = member.weight / self._scale(member.steps), self.sums.get(MAGNITUDE, {})
        self._add_whole(whole, factor, UPDATE, MAGNITUDE)
        for name, rows, delta in split:
            if rows is not None:
                _add_rows(rows, delta, factor, self.sums[UPDATE][name], sizes.get(name))
        if gradient:
            if GRADIENT not in self.sums:
                self._lay_out(GRADIENT, gradient, gradient)
            self._add_whole(gradient, member.weight, GRADIENT)
        self.record([member])

    def _lay_out(self, kind: str, like: Arrays, whole: Collection[str]) -> None:
        """Prepare sums of the form of `like`; those of `whole` are views of one vector, for few additions."""
        names = self._names[kind] = [name for name in like if name in whole]
        ends = np.cumsum([like[name].size for name in names], dtype=int)
        self._vectors[kind] = np.zeros(ends[-1:].sum())
        views = dict(zip(names, np.split(self._vectors[kind], ends), strict=False))
        self.sums[kind] = {n: views[n].reshape(a.shape) if n in views else np.zeros(a.shape) for n, a in like.items()}

    def _add_whole(self, added: Arrays, factor: float, kind: str, absolute: str = "") -> None:
        """Add arrays that are no rows of a table, times a factor, and their magnitudes to a further kind."""
        if (names := self._names.get(kind)) and added.keys() == {*names}:
            flat = np.concatenate([added[name].reshape(-1) for name in names])
            return _add(flat, factor, self._vectors[kind], self._vectors.get(absolute))
        for name, delta in added.items():
            _add(delta, factor, self.sums[kind][name], self.sums.get(absolute, {}).get(name))

    def add_stack(self, members: Sequence[Member], weights: Floats, update: Arrays, gradient: Arrays) -> None:
        """Add clients with equal numbers of steps, whose arrays are stacked along dimension 0.

        Args:
            members: The clients that count.
            weights: Weight of each row, (K,); 0 for rows that do not count.
            update: Δ_k, K × ….
            gradient: s_k, K × …; empty if the method sends none.
        """
        self.dtypes |= {name: a.dtype for name, a in update.items()}
        factors = weights / self._scale(members[0].steps if members else 1)
        self.add_sums(UPDATE, _sum(factors, update))
        if self._magnitude:
            self.add_sums(MAGNITUDE, _sum(factors, {name: np.abs(a) for name, a in update.items()}))
        self.add_sums(GRADIENT, _sum(weights, gradient))
        self.record(members)

    def with_replies(self, replies: Sequence[SingleReply]) -> "Contribution":
        """Return itself with the single replies that it sums, for methods that need them."""
        self._singles = replies
        return self

    def select(self, names: Collection[str]) -> "Contribution":
        """Return the contribution of these members alone, from their single replies.

        Raises:
            ConfigError: The total has sums alone.
        """
        chosen, total = [reply for reply in self.replies if reply.client in names], self.empty()
        for reply in chosen:
            total.add(reply.member, reply.update, reply.gradient)
        return total.with_replies(chosen)

    def add_sums(self, kind: str, added: Mapping[str, Array]) -> None:
        """Add named arrays to the sums of a kind, without a member."""
        sums = self.sums.setdefault(kind, {}) if added else {}
        for name, a in added.items():
            if name in sums:
                sums[name] += a
            else:
                sums[name] = np.array(a, np.float64)

    def empty(self) -> "Contribution":
        """Return a contribution of the same form without members."""
        return Contribution(per_step=self._per_step, magnitude=self._magnitude, tables=self._tables)

    def merge(self, other: "Contribution") -> None:
        """Add the members and sums of another contribution."""
        self.dtypes |= other.dtypes
        for kind, arrays in other.sums.items():
            self.add_sums(kind, arrays)
        self.members += other.members
        self.weight += other.weight
        self.weighted_steps += other.weighted_steps

    def mean_update(self) -> Arrays:
        """Return Δ̄.

        Raises:
            ValueError: No member, or no weight.
        """
        return self._mean(UPDATE, self._mean_steps)

    def mean_and_magnitude(self) -> tuple[Arrays, Arrays]:
        """Return Δ̄ and Δ' = τ̄·Σ p_k |Δ_k|/τ_k: |Δ̄| ≤ Δ' in every number."""
        return self.mean_update(), self._mean(MAGNITUDE, self._mean_steps)

    def mean_gradient(self) -> Arrays:
        """Return s̄ = Σ p_k s_k."""
        return self._mean(GRADIENT)

    def mean_direction(self, rate: Rate) -> Arrays:
        """Return Σ p_k Δ_k/(ητ_k), with η the rate of a parameter; only if sums are per step."""
        means = {name: a / (rate(name) * self._positive_weight) for name, a in self.sums[UPDATE].items()}
        return {name: a.astype(self.dtypes[name]) for name, a in means.items()}

    def to_arrays(self) -> Arrays:
        """Return sums, weight and steps by name, without the members; `from_arrays` reads them."""
        arrays: Arrays = {"weight": np.array(self.weight), "steps": np.array(self.weighted_steps)}
        arrays |= {f"dtypes/{name}": np.zeros(0, dtype) for name, dtype in self.dtypes.items()}
        for kind, named in self.sums.items():
            arrays |= add_prefix(f"sums/{kind}", named)
        return arrays

    @staticmethod
    def from_arrays(arrays: Arrays, members: Iterable[Member] = ()) -> "Contribution":
        """Return the contribution of these members; inverse of `to_arrays`.

        Raises:
            KeyError: The weight or the steps are missing.
            ValueError: They are no single numbers.
        """
        total = Contribution()
        total.weight, total.weighted_steps = float(arrays["weight"].item()), float(arrays["steps"].item())
        total.dtypes = {name: a.dtype for name, a in group("dtypes", arrays).items()}
        total.members = [*members]
        for name, a in group("sums", arrays).items():
            kind, _, parameter = name.partition("/")
            total.sums.setdefault(kind, {})[parameter] = a
        return total

    @property
    def _positive_weight(self) -> float:
        if not self.weight > 0:
            raise ValueError("a mean needs at least one member of positive weight")
        return self.weight

    @property
    def _mean_steps(self) -> float:
        """Mean τ̄ of the local steps; 1 if sums are not per step."""
        return self.weighted_steps / self._positive_weight if self._per_step else 1.0

    def _scale(self, steps: int) -> int:
        return steps if self._per_step else 1

    def _mean(self, kind: str, factor: float = 1.0) -> Arrays:
        factor /= self._positive_weight
        return {name: (a * factor).astype(self.dtypes[name]) for name, a in self.sums.get(kind, {}).items()}

    def record(self, members: Sequence[Member]) -> None:
        """Add members whose arrays are in the sums."""
        self.members += members
        self.weight += total_of(member.weight for member in members)
        self.weighted_steps += total_of(member.weight * member.steps for member in members)


@dataclass(frozen=True, eq=False)
class ClientBlock:
    """Clients whose replies are one sum.

    `number` is the place of the block in its round.
    """

    number: int
    clients: tuple[str, ...]
    sums: Contribution


@dataclass(frozen=True)
class BlockReply(TrainReply):
    """Reply of a client of a block; its arrays are in the block's sums alone."""

    block: ClientBlock = field(default_factory=lambda: ClientBlock(0, (), Contribution()))
    lengths: Mapping[str, float] = field(default_factory=dict)
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
        reference: Typical lengths of the last round, or half of the block's lower median if that is longer, since all may
            grow; a kind without one is compared within the block.
        limits: Bound on each client's length, as a multiple of the typical one; 0: none.
        lengths: Kind -> length of each client's reply, (K,).
        losses: Loss of each client, (K,).
    """
    trusted = np.abs(losses) <= MAX_PLAUSIBLE
    for kind, length in lengths.items():
        found = np.sort(length[length > 0])
        lower = float(found[(len(found) - 1) // 2]) if len(found) else 0.0
        middle = max(reference[kind], lower / 2) if kind in reference else lower
        most = np.where(limits > 0, DOUBT * limits * middle, math.inf)
        trusted &= np.isfinite(length) & (length <= most)
    return np.flatnonzero(~trusted).tolist()


def _sum(weights: Floats, stacked: Arrays) -> Arrays:
    with np.errstate(over="ignore", invalid="ignore"):
        return {n: (weights @ a.reshape(len(a), -1)).reshape(a.shape[1:]) for n, a in stacked.items() if len(a)}


def _add(delta: Array, factor: float, signed: Array, absolute: Array | None) -> None:
    """Update both sums in one pass over `delta`, block by block."""
    flat, room = delta.reshape(-1), np.empty(min(BLOCK_SIZE, delta.size))
    for start in range(0, flat.size, BLOCK_SIZE):
        block = slice(start, start + BLOCK_SIZE)
        scaled = room[: flat[block].size]
        np.multiply(flat[block], factor, out=scaled, dtype=np.float64)
        signed.reshape(-1)[block] += scaled
        if absolute is not None:
            absolute.reshape(-1)[block] += np.abs(scaled, out=scaled)


def _add_rows(rows: Array, delta: Array, factor: float, signed: Array, absolute: Array | None) -> None:
    """Update both sums in the rows of these ids, which do not repeat."""
    scaled = delta.astype(np.float64) * factor
    signed[rows] += scaled
    if absolute is not None:
        absolute[rows] += np.abs(scaled, out=scaled)


def _check_shapes(split: Sequence[tuple[str, Array | None, Array]], like: Arrays) -> None:
    shapes = {n: a.shape if rows is None else (len(like[n]), *a.shape[1:]) for n, rows, a in split if n in like}
    if len(split) != len(like) or shapes != {n: a.shape for n, a in like.items()}:
        raise ValueError("updates of one round must agree in names and shapes")
