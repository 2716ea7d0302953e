"""Lengths of updates: the bound on them, outliers, and the memory of earlier rounds. Pure, NumPy."""

import math
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from common.arrays import Array, Arrays, norm
from common.contribution import BlockReply, Lengths, positive, typical
from common.wire.messages import TrainReply
from common.wire.sparse_rows import ROWS
from server.aggregation.alignment import Alignment

T = TypeVar("T")

LARGE_ROUND = 5
"""Number of replies from which a round's own median is the reference."""

FIRST_REFERENCE = 10.0
"""Reference of one or two exact updates without an earlier round, as a multiple of max(1, ‖θ‖)."""


CLIP = 3.0
"""Multiple of the typical length at which the longer updates of a round of five or more count."""


MANY_SUMS, SHARE = 20, 0.43
"""Number of statistics from which on none is longer than this share of the root of all squares."""


@dataclass(frozen=True)
class Excess:
    """Reply that is longer than the bound.

    Args:
        reason: Its length, the typical one and the bound.
        factors: Kind -> factor that makes a length beyond the bound the typical one.
        counts: The same in words.
    """

    reason: str
    factors: Lengths


def measure(reply: TrainReply) -> Lengths:
    """Return the norms of a reply."""
    if isinstance(reply, BlockReply):
        return dict(reply.lengths)
    numbers = [a for name, a in reply.update.items() if not name.endswith(ROWS)]
    gradient = {"gradient": _length([*reply.gradient.values()])} if reply.gradient else {}
    with np.errstate(over="ignore"):
        return {"update": _length(numbers), **gradient}


def scale_update(lengths: Lengths, factor: float) -> Lengths:
    """Return the norms with that of the update scaled to the number of local steps of the round."""
    return {kind: (factor if kind == "update" else 1.0) * length for kind, length in lengths.items()}


def _length(arrays: Sequence[Array]) -> float:
    """Return the L2 norm of all arrays, read as one vector in float64; unlike `norm`, not to the last bit."""
    vector = np.concatenate([a.ravel() for a in arrays], dtype=np.float64) if arrays else np.zeros(0)
    return float(np.sqrt(vector @ vector))


def references(lengths: Sequence[Lengths], past: Sequence[Lengths], first: float) -> Lengths:
    """Return the length of each kind that counts as typical in a round; infinite if none exists.

    From five replies on it is their median. Below, it is the largest median of the last rounds or, if that is longer, the
    lower median of the round, since all updates may grow together. One or two replies cannot judge each other.

    Args:
        lengths: Lengths of the round's replies.
        past: Typical lengths of the last rounds under the same noise.
        first: Reference if there is no other.
    """
    found = {}
    for kind in dict.fromkeys(kind for one in lengths for kind in one):
        now, earlier = positive(lengths, kind), [one[kind] for one in past if kind in one]
        if len(now) >= LARGE_ROUND:
            found[kind] = statistics.median(now)
        elif len(now) > 2 or (len(now) == 2 and earlier):
            found[kind] = max([statistics.median_low(now), *earlier])
        else:
            found[kind] = max(earlier, default=first)
    return found


def allowances(weights: Mapping[str, float]) -> dict[str, float]:
    """Return client -> factor √(w̃ / w_k), at least 1, on the reference.

    w̃ is the lower median of the weights. A mean over n examples varies by 1/√n, so honest updates from few examples are
    longer. In the mean of the round, such an update moves the model no further than one of weight w̃ at the reference.
    """
    middle = statistics.median_low(weights.values()) if weights else 0.0
    return {client: max(1.0, math.sqrt(middle / weight)) for client, weight in weights.items()}


def limit_claims(weights: dict[str, float], lengths: Mapping[str, Lengths]) -> dict[str, float]:
    """Return weights of statistics whose claimed records leave the sum to the others (cosine of .9).

    Statistics that do not oppose each other have a sum as long as the root of their squared lengths.
    """
    if len(now := positive([*lengths.values()], "update")) < MANY_SUMS:
        return weights
    longest = CLIP * statistics.median(now)
    most = max(1.0, SHARE * float(np.linalg.norm(np.minimum(now, longest))) / longest)
    return {client: max(one, statistics.median_low(weights.values()) / most**2) for client, one in weights.items()}


def find_excess(
    lengths: Mapping[str, Lengths], limits: Lengths, bound: float, factors: Mapping[str, float]
) -> dict[str, Excess]:
    """Return the clients with a length of more than `bound` times its reference.

    Args:
        lengths: Client -> lengths of its reply.
        limits: Reference of each kind.
        bound: The option `federation.norm-bound`.
        factors: Client -> factor on its reference.
    """
    found = {}
    for client, one in lengths.items():
        typical = {kind: factors[client] * limits[kind] for kind in one}
        if beyond := [kind for kind, length in one.items() if length > bound * typical[kind] > 0]:
            kind = beyond[-1]
            reason = (
                f"{kind} of norm {one[kind]:.3g}, {one[kind] / typical[kind]:.3g} times the typical {typical[kind]:.3g};"
                f" federation.norm-bound is {bound:g}"
            )
            found[client] = Excess(reason, {kind: typical[kind] / one[kind] for kind in beyond})
    return found


@dataclass(frozen=True)
class Judged:
    """Judgement on the lengths of a round.

    Args:
        excess: Clients beyond the bound.
        clipped: Client below it -> factors on its arrays that are longer than `CLIP` times the typical ones.
        usual: Typical lengths of the clients below the bound.
    """

    excess: dict[str, Excess]
    clipped: dict[str, Lengths]
    usual: Lengths


def judge_lengths(
    lengths: Mapping[str, Lengths], weights: Mapping[str, float], past: Sequence[Lengths], first: float, bound: float
) -> Judged:
    """Return the judgement on the lengths of a round.

    Args:
        lengths: Client -> lengths of its reply.
        weights: Client -> weight of its reply.
        past: Typical lengths of the last rounds under the same noise.
        first: Reference if there is no other.
        bound: The option `federation.norm-bound`.
    """
    limits = references([*lengths.values()], past, first)
    allowed = allowances(weights)
    excess = find_excess(lengths, limits, bound, allowed)
    others = {client: one for client, one in lengths.items() if client not in excess}
    most = {client: {kind: CLIP * allowed[client] * limits[kind] for kind in one} for client, one in others.items()}
    clipped = {
        client: {kind: most[client][kind] / length for kind, length in one.items() if length > most[client][kind] > 0}
        for client, one in others.items()
    }
    is_large = len(lengths) >= LARGE_ROUND
    return Judged(excess, {c: f for c, f in clipped.items() if f and is_large}, typical([*others.values()]))


FAR = 3.0
"""Multiple of the median distance from the coordinate-wise median, beyond which an update is far."""

AT_ONCE = 1 << 26
"""Numbers of all updates in memory at a time."""


def find_outliers(updates: Mapping[str, Callable[[], Arrays]]) -> list[str]:
    """Return the clients whose updates are far from the coordinate-wise median, less than half of them.

    If none is that far, the farthest one counts. Of fewer than three updates, none is singled out. They are read one at a
    time.
    """
    if len(updates) < 3:
        return []
    middle = {name: _median(name, a, updates) for name, a in next(iter(updates.values()))().items()}
    distances = {client: _distance(load(), middle) for client, load in updates.items()}
    limit = FAR * float(np.median([*distances.values()]))
    farthest = sorted(distances, key=lambda client: -distances[client])[: (len(updates) - 1) // 2]
    far = [client for client in farthest if distances[client] > limit]
    return far or [client for client in farthest[:1] if distances[client]]


def _median(name: str, like: Array, updates: Mapping[str, Callable[[], Arrays]]) -> Array:
    """Return the coordinate-wise median of one array, a part of it at a time."""
    size, medians = AT_ONCE // len(updates) + 1, []
    for start in range(0, max(like.size, 1), size):
        rows = [load()[name].reshape(-1)[start : start + size].copy() for load in updates.values()]
        medians.append(np.median(rows, axis=0))
    return np.concatenate(medians).reshape(like.shape)


def _distance(update: Arrays, middle: Arrays) -> float:
    return norm({name: update[name] - a for name, a in middle.items()})


RECENT_ROUNDS = 5
"""Number of last rounds whose lengths are stored."""


@dataclass(frozen=True)
class RoundLengths:
    """Typical lengths of a round's replies; `noise` names its privacy cost and clip norm."""

    noise: str
    lengths: Lengths


@dataclass(frozen=True)
class ReplyMemory:
    """Memory of the checks on replies."""

    recent: tuple[RoundLengths, ...] = ()
    """The last rounds, oldest first."""
    excluded: dict[str, int] = field(default_factory=dict)
    """Client -> last round in which it sits out."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Client of a small federation -> number of replies in a row that were left out as too long."""
    alignment: dict[str, dict[str, Alignment]] = field(default_factory=dict)
    """`update` and `gradient` -> client -> alignment with the others, over its rounds."""
    allied: tuple[str, ...] = ()
    """Clients that were in a coalition."""
    votes: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Client -> votes against its updates and all votes, of the rounds in which it was a suspect."""

    def to_json(self) -> dict[str, Any]:
        """Return the memory as JSON values; they are views."""
        alignment = {kind: {client: vars(one) for client, one in of.items()} for kind, of in self.alignment.items()}
        return {**vars(self), "recent": [vars(one) for one in self.recent], "alignment": alignment}

    def past(self, noise: str) -> list[Lengths]:
        """Return the lengths of the last rounds with equal noise, since noise decides on the length."""
        return [one.lengths for one in self.recent if one.noise == noise]

    def record(self, noise: str, lengths: Lengths) -> "ReplyMemory":
        """Return the memory after a round with these typical lengths."""
        return replace(self, recent=(*self.recent, RoundLengths(noise, lengths))[-RECENT_ROUNDS:]) if lengths else self

    def count(self, left_out: Collection[str], accepted: Collection[str]) -> "ReplyMemory":
        """Return the memory after replies of a small federation were left out as too long or accepted."""
        counts = {client: n for client, n in self.left_out.items() if client not in accepted}
        return replace(self, left_out=counts | {client: counts.get(client, 0) + 1 for client in left_out})

    def align(self, kind: str, cosines: Mapping[str, float]) -> "ReplyMemory":
        """Return the memory after these alignments of a round."""
        earlier = self.alignment.get(kind, {})
        middle = statistics.median(cosines.values()) if cosines else 0.0
        added = {client: earlier.get(client, Alignment()).add(cosine, middle) for client, cosine in cosines.items()}
        return replace(self, alignment={**self.alignment, kind: {**earlier, **added}})

    def poll(self, suspects: Collection[str], votes: Sequence[bool]) -> "ReplyMemory":
        """Return the memory after a round's votes on suspects; True is against them."""
        earlier = {client: self.votes.get(client, (0, 0)) for client in suspects}
        polled = {client: (old[0] + sum(votes), old[1] + len(votes)) for client, old in earlier.items()}
        return replace(self, votes={**self.votes, **polled})

    def exclude(self, clients: Collection[str], last_round: int) -> "ReplyMemory":
        """Return the memory after clients were excluded up to a round; a longer penalty stays."""
        longest = {client: max(last_round, self.excluded.get(client, 0)) for client in clients}
        return replace(self, excluded={**self.excluded, **longest}) if clients else self

    def without_excluded(self, clients: Mapping[str, T], number: int) -> dict[str, T]:
        """Return the clients that do not sit out a round."""
        return {client: one for client, one in clients.items() if number > self.excluded.get(client, 0)}
