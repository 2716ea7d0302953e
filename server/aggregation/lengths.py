"""Lengths of updates, and the bound on them. Pure, NumPy."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from common.arrays import Arrays
from common.reply_lengths import Lengths, positive
from common.reply_sums import BlockReply
from common.wire.messages import TrainReply
from common.wire.sparse_rows import numbers_of

LARGE_ROUND = 5
"""Number of replies from which a round's own median is the reference."""

FIRST_REFERENCE = 10.0
"""Reference of one or two exact updates without an earlier round, as a multiple of max(1, ‖θ‖)."""


@dataclass(frozen=True)
class Excess:
    """Reply that is longer than the bound.

    Args:
        reason: Its length, the typical one and the bound.
        factors: Kind -> factor that makes a length beyond the bound the typical one.
    """

    reason: str
    factors: Lengths


def measure(reply: TrainReply) -> Lengths:
    """Return the norms of a reply."""
    if isinstance(reply, BlockReply):
        return dict(reply.lengths)
    gradient = {"gradient": _length(reply.gradient)} if reply.gradient else {}
    with np.errstate(over="ignore"):
        return {"update": _length(numbers_of(reply.update)), **gradient}


def scale_update(lengths: Lengths, factor: float) -> Lengths:
    """Return the norms with that of the update scaled to the number of local steps of the round."""
    return {kind: (factor if kind == "update" else 1.0) * length for kind, length in lengths.items()}


def _length(arrays: Arrays) -> float:
    """Return the L2 norm of all arrays, read as one vector in float64; unlike `norm`, not to the last bit."""
    vector = np.concatenate([a.ravel() for a in arrays.values()], dtype=np.float64) if arrays else np.zeros(0)
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
