"""Pooled STL properties of similar clients for cold-start clients. Pure, NumPy."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from common.arrays import Array, Arrays, Floats
from common.tasks.traffic.ranges import POOLED, middle
from server.aggregation.clusters import pool_ranges

MIN_GROUP_SIZE = 5
"""Members of a group; a smaller one would reveal its members.

Source: explore-traffic.md, cold-start clients: the five nearest.
"""


def pool_neighbors(low: Mapping[str, Array], high: Mapping[str, Array]) -> Arrays:
    """Return the weakest property of every group of similar members, G × W × D.

    The keys are the names in `POOLED`. Groups share no member, so combining groups reveals nothing more about a member. The
    result is empty below `MIN_GROUP_SIZE` members.

    Args:
        low: Client -> lower bounds, W × D. Omitted are bounds of a shape other than the most common one, without a finite
            value, or open on a side that `MIN_GROUP_SIZE` members close.
        high: Client -> upper bounds.
    """
    both = {name: np.stack([low[name], high[name]]) for name in sorted(low.keys() & high.keys())}
    shape = Counter(bounds.shape for bounds in both.values()).most_common(1)[0][0] if both else ()
    members = _keep_closed([bounds for bounds in both.values() if bounds.shape == shape and np.isfinite(bounds).any()])
    if len(members) < MIN_GROUP_SIZE:
        return {}
    middles = np.stack([middle(*bounds).ravel() for bounds in members])
    pooled = [pool_ranges(*zip(*(members[k] for k in group), strict=True)) for group in group_nearest(middles)]
    return {name: np.stack([phi[bound] for phi in pooled]) for name, bound in zip(POOLED, ("low", "high"), strict=True)}


def group_nearest(points: Floats) -> list[list[int]]:
    """Return disjoint groups of `MIN_GROUP_SIZE` close points.

    The last group may have up to twice as many less one. The point farthest from the mean of the remaining ones takes its
    nearest ones: a point at the edge has the least choice.
    """
    left, groups = np.arange(len(points)), []
    while len(left) >= 2 * MIN_GROUP_SIZE:
        candidates = points[left]
        farthest = np.square(candidates - candidates.mean(0)).mean(1).argmax()
        order = np.square(candidates - candidates[farthest]).mean(1).argsort(kind="stable")
        groups.append(left[order[:MIN_GROUP_SIZE]].tolist())
        left = np.sort(left[order[MIN_GROUP_SIZE:]])
    return [*groups, left.tolist()]


def _keep_closed(members: Sequence[Array]) -> list[Array]:
    """Return members that have every bound which at least `MIN_GROUP_SIZE` members have.

    A member without such a bound would remove it from its whole group.
    """
    common = np.sum([np.isfinite(bounds) for bounds in members], axis=0) >= MIN_GROUP_SIZE
    return [bounds for bounds in members if np.isfinite(bounds)[common].all()]
