"""Robust aggregates of updates, some of which may be lies, as a change of the replies. Pure, NumPy.

The breakdown point is the share of arbitrary updates from which on an aggregate can be moved without limit; a mean has 0.
Every averaging strategy has them, since they change the replies.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median_low

import numpy as np

from common.arrays import Arrays, Floats, norm
from common.config.federation import RobustRule
from server.aggregation.replies import Reply

BLOCK_SIZE = 1 << 20
"""Numbers of all updates processed at a time."""

ITERATIONS, SMOOTHING, PRECISION = 64, 1e-6, 1e-6
"""Steps of the smoothed Weiszfeld algorithm, its ν, and its stopping distance.

Both are shares of the median distance.
"""

Reduction = Callable[[Floats], Floats]
"""Function of a block of coordinates, n × b, that returns b numbers."""


def attackers(replies: int, share: float) -> int:
    """Return the number f of attackers assumed among replies: at least one, and less than half."""
    return min(max(1, int(share * replies)), (replies - 1) // 2)


def coordinate_median(updates: Sequence[Arrays]) -> Arrays:
    """Return the median of every coordinate (Yin et al. 2018, arXiv 1803.01498, Definition 1).

    The breakdown point is 1/2.
    """
    return trimmed_mean(updates, (len(updates) - 1) // 2)


def trimmed_mean(updates: Sequence[Arrays], trimmed: int) -> Arrays:
    """Return the mean of every coordinate without the k smallest and k largest values.

    Source: Yin et al. 2018, arXiv 1803.01498, Definition 2. The breakdown point is k/n, for k < n/2.
    """
    middle = slice(trimmed, len(updates) - trimmed)
    return _by_coordinate(updates, lambda block: np.sort(block, axis=0)[middle].mean(axis=0))


def multi_krum(updates: Sequence[Arrays], malicious: int) -> list[int]:
    """Return the n − f updates closest to their n − f − 2 nearest neighbors.

    Source: Blanchard et al. 2017, arXiv 1703.02757. The breakdown point is f/n. Its
    proof needs n ≥ 2f + 3; f is lowered where n is smaller.
    """
    count = len(updates)
    malicious = max(0, min(malicious, (count - 3) // 2))
    squares = _squared_distances(updates)
    np.fill_diagonal(squares, np.inf)
    nearest = np.sort(squares, axis=1)[:, : max(1, count - malicious - 2)]
    order = np.argsort(nearest.sum(axis=1), kind="stable")
    return sorted(int(k) for k in order[: count - malicious])


def geometric_median(updates: Sequence[Arrays]) -> Arrays:
    """Return the point of the least summed distance to all updates.

    Source: Pillutla et al. 2022, arXiv 1912.13445. The
    smoothed Weiszfeld algorithm starts from the coordinate-wise median. The breakdown point is 1/2.
    """
    center = {name: a.astype(np.float64) for name, a in coordinate_median(updates).items()}
    for _ in range(ITERATIONS):
        distances = np.array([norm({n: u[n] - a for n, a in center.items()}) for u in updates])
        scale = float(np.median(distances))
        if scale == 0:
            break
        weights = 1 / np.maximum(distances, SMOOTHING * scale)
        weights /= weights.sum()
        before = center
        center = {n: sum(w * u[n].astype(np.float64) for w, u in zip(weights, updates, strict=True)) for n in center}
        if norm({n: a - before[n] for n, a in center.items()}) <= PRECISION * scale:
            break
    return {name: center[name].astype(a.dtype) for name, a in updates[0].items()}


def _by_coordinate(updates: Sequence[Arrays], reduce: Reduction) -> Arrays:
    width = max(1, BLOCK_SIZE // len(updates))
    result = {}
    for name, first in updates[0].items():
        columns = [u[name].reshape(-1) for u in updates]
        flat = np.empty(first.size, first.dtype)
        for start in range(0, first.size, width):
            block = np.stack([column[start : start + width] for column in columns]).astype(np.float64)
            flat[start : start + width] = reduce(block)
        result[name] = flat.reshape(first.shape)
    return result


def _squared_distances(updates: Sequence[Arrays]) -> Floats:
    """Return ‖u_i − u_j‖² of all pairs, n × n."""
    products = np.zeros((len(updates), len(updates)))
    width = max(1, BLOCK_SIZE // len(updates))
    for name, first in updates[0].items():
        columns = [u[name].reshape(-1) for u in updates]
        for start in range(0, first.size, width):
            block = np.stack([column[start : start + width] for column in columns]).astype(np.float64)
            products += block @ block.T
    norms = np.diagonal(products)
    return np.maximum(norms[:, None] + norms[None] - 2 * products, 0)


MIN_REPLIES = 3
"""Replies of a group from which its aggregate is robust; fewer keep their mean."""

Aggregate = Callable[[Sequence[Arrays], int], Arrays]

AGGREGATES: dict[str, Aggregate] = {
    "median": lambda updates, malicious: coordinate_median(updates),
    "trimmed-mean": trimmed_mean,
    "geometric-median": lambda updates, malicious: geometric_median(updates),
}


def robust_replies(replies: list[Reply], rule: RobustRule, share: float, group_of: Callable[[str], int]) -> list[Reply]:
    """Return replies of which every mean within a group is the robust aggregate of the group.

    They have equal weights and steps, so that no client decides on either.

    Args:
        replies: Replies of the round.
        rule: Rule of aggregation.
        share: Assumed share of attackers.
        group_of: Group of a client, with a model of its own.
    """
    if rule == "none":
        return replies
    groups: dict[int, list[Reply]] = {}
    for reply in replies:
        groups.setdefault(group_of(reply.client), []).append(reply)
    changed = {r.client: r for members in groups.values() for r in _aggregate(members, rule, share)}
    return [changed[reply.client] for reply in replies if reply.client in changed]


def _aggregate(members: list[Reply], rule: RobustRule, share: float) -> list[Reply]:
    steps, malicious = median_low(reply.train.steps for reply in members), attackers(len(members), share)
    updates = [reply.train.update for reply in members]
    gradients = [reply.train.gradient for reply in members]
    if len(members) >= MIN_REPLIES and rule == "multi-krum":
        members = [members[k] for k in multi_krum(updates, malicious)]
    elif len(members) >= MIN_REPLIES:
        aggregate = AGGREGATES[rule]
        update, gradient = aggregate(updates, malicious), aggregate(gradients, malicious)
        members = [replace(m, train=replace(m.train, update=update, gradient=gradient)) for m in members]
    return [replace(m, weight=1.0, train=replace(m.train, steps=steps)) for m in members]
