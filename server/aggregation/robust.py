"""Robust aggregates of updates, some of which may be lies, as a change of the replies. Pure, NumPy.

The breakdown point is the share of arbitrary updates from which on an aggregate can be moved without limit; a mean has 0.
Every averaging strategy has them, since they change the replies.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import median_low

import numpy as np

from common.arrays import Array, Arrays, Floats, Ints, norm
from common.config.federation import RobustRule
from common.contribution import Contribution
from common.tasks.closed_form import RowNames
from common.wire.sparse_rows import VALUES, split_rows
from server.aggregation.replies import Reply, with_update

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
    result = {}
    for name, first in updates[0].items():
        flat = np.empty(first.size, first.dtype)
        for span, block in _blocks(updates, name):
            flat[span] = reduce(block)
        result[name] = flat.reshape(first.shape)
    return result


def _blocks(updates: Sequence[Arrays], name: str) -> Iterator[tuple[slice, Floats]]:
    """Yield blocks of one array's coordinates, each with its values in all updates, n × b in float64."""
    width, columns = max(1, BLOCK_SIZE // len(updates)), [u[name].reshape(-1) for u in updates]
    for start in range(0, columns[0].size, width):
        span = slice(start, start + width)
        yield span, np.stack([column[span] for column in columns]).astype(np.float64)


def _squared_distances(updates: Sequence[Arrays]) -> Floats:
    """Return ‖u_i − u_j‖² of all pairs, n × n."""
    products = np.zeros((len(updates), len(updates)))
    for name in updates[0]:
        for _, block in _blocks(updates, name):
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


ITEM_CLIP = 1.5
"""Multiple of the limit of an item at which more of it counts."""

Items = tuple[Ints, Floats]
"""Items of a client, ascending, and a number of each."""


def limit_items(
    replies: Sequence[Reply], tables: Mapping[str, RowNames], solved: Arrays, share: float, columns: int | None
) -> tuple[list[Reply], dict[str, float]]:
    """Return statistics in which no item counts above its limit, and client -> largest excess before.

    Arrays are read one client at a time, here and when they are added up.

    Args:
        replies: Statistics of single clients.
        tables: Table of statistics -> names of its rows; a row counts by its item, or by both of its pair.
        solved: What is solved so far.
        share: Assumed share of attackers.
        columns: End of the columns with statistics; None: all.
    """

    def members(table: str, rows: Array | None, a: Array) -> Ints:
        return np.array(tables[table].members(solved, np.arange(len(a)) if rows is None else rows.astype(np.int64)))

    sums: dict[str, dict[str, Items]] = {table: {} for table in tables}
    for reply in replies:
        for table, rows, a in split_rows(reply.update):
            if table in tables and a.ndim == 2 and len(used := np.flatnonzero(a[:, :columns].any(axis=1))):
                items, at = np.unique(members(table, rows, a)[:, used], return_inverse=True)
                mass = np.abs(a[used, :columns]).sum(axis=1, dtype=np.float64)
                by_item = np.bincount(at.ravel(), np.tile(mass, at.size // len(mass)))
                sums[table][reply.client] = items, by_item.astype(np.float64)
    excess = {table: item_excess(found, attackers(len(replies), share)) for table, found in sums.items()}

    def limit(reply: Reply) -> Arrays:
        update = dict(reply.update)
        for table, rows, a in split_rows(reply.update):
            if reply.client in excess.get(table, {}):
                items, factors = excess[table][reply.client]
                at = np.searchsorted(items, members(table, rows, a)).clip(max=len(items) - 1)
                limited = a.copy()
                limited[:, :columns] /= np.maximum(factors[at].max(axis=0) / ITEM_CLIP, 1)[:, None].astype(a.dtype)
                update[table if rows is None else table + VALUES] = limited
        return update

    most = {
        r.client: max((float(one[r.client][1].max()) for one in excess.values() if r.client in one), default=1.0)
        for r in replies
    }
    return [with_update(reply, partial(limit, reply)) for reply in replies], most


def item_excess(sums: Mapping[str, Items], liars: int) -> dict[str, Items]:
    """Return by which factor each client's items exceed their limits.

    The limit is what the client at rank `liars` + 1 has of an item, or the median client's median if that is more. An item
    exceeds it by its mass and by its share of the client's mass; the smaller factor counts.
    """
    if not sums:
        return {}
    items, masses = np.concatenate([one for one, _ in sums.values()]), [mass for _, mass in sums.values()]
    excess = np.minimum(_beyond(items, masses, liars), _beyond(items, [one / one.sum() for one in masses], liars))
    by_client = np.split(excess, np.cumsum([len(one) for one in masses])[:-1])
    return {client: (one, factors) for (client, (one, _)), factors in zip(sums.items(), by_client, strict=True)}


def _beyond(items: Ints, masses: Sequence[Floats], liars: int) -> Floats:
    """Return the masses of all clients' items over the limits of these items."""
    mass = np.concatenate(masses)
    order = np.lexsort((-mass, items))
    first = np.flatnonzero(np.diff(items[order], prepend=-1))
    counts, limits = np.diff(first, append=len(items)), np.empty(len(items))
    ranked = mass[order[np.minimum(first + liars, len(items) - 1)]] * (counts > liars)
    limits[order] = np.repeat(np.maximum(ranked, np.median([np.median(one) for one in masses])), counts)
    beyond: Floats = mass / limits
    return beyond


def bounded(vector: Floats, longest: float) -> Floats:
    """Return a mean, scaled down to the largest norm that it can have."""
    norm = float(np.linalg.norm(vector))
    return vector * (longest / norm) if norm > longest else vector


def median_of(groups: Sequence[Contribution]) -> Contribution:
    """Return the coordinate-wise median of the groups' means as a contribution; one group unchanged.

    Fewer than half of the groups cannot move a number beyond the means of the others (breakdown point (G − 1)/2G of
    the groups). |Δ̄| ≤ Δ' holds for medians as for means.
    """
    return _combine(groups, lambda means, weights: np.asarray(np.median(np.stack(means), axis=0)))


LONGEST_TABLE, LONGEST_SCORES = 1.5, 3.0
"""Multiples of the median norm over groups at which a longer table counts, and a longer vector.

Tables of honest groups of 14 clients had norms of .8 to 1.4 of the median. Vectors are scores of hidden records: 1.9.
"""


def add_groups(groups: Sequence[Contribution]) -> Contribution:
    """Return the sum over the groups, whose longer arrays count at a multiple of the median norm.

    One group stays as it is. A row that a single group has stays, which a median would lose. If one of G groups is false, the
    sum of the others has a cosine of √(1 − (1.5/(G − 1))²) with the table at least, where the others have equal directions
    and lengths: .97 for seven groups.
    """
    return _combine(groups, _mean_of_bounded)


def _mean_of_bounded(means: Sequence[Floats], weights: Sequence[float]) -> Floats:
    factor = LONGEST_TABLE if means[0].ndim > 1 else LONGEST_SCORES
    most = factor * float(np.median([np.linalg.norm(a) for a in means]))
    return np.average([bounded(a, most) for a in means], axis=0, weights=weights)


def _combine(
    groups: Sequence[Contribution], combine: Callable[[Sequence[Floats], Sequence[float]], Floats]
) -> Contribution:
    """Return a contribution with means combined of the groups' means; one group unchanged."""
    if len(groups) == 1:
        return groups[0]
    total, weights = groups[0].empty(), [one.weight for one in groups]
    for one in groups:
        total.record(one.members)
    total.dtypes = groups[0].dtypes
    for kind, arrays in groups[0].sums.items():
        means = {n: combine([one.sums[kind][n] / one.weight for one in groups], weights) for n in arrays}
        total.add_sums(kind, {name: a * total.weight for name, a in means.items()})
    return total
