"""What newcomers may know of the others: properties of groups of members that are alike in shape. Pure, NumPy."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from common.arrays import Array, Arrays
from common.tasks.traffic.ranges import POOLED, middle
from server.aggregation.clusters import weakest

LEAST = 5
"""Members of a group; a smaller one would show what its members are like (explore-traffic.md, newcomers: the five nearest)."""


def neighbourhoods(low: Mapping[str, Array], high: Mapping[str, Array]) -> Arrays:
    """The weakest property of every group of members, G × W × D under each name of `POOLED`; empty below `LEAST` members.

    Groups share no member, so that no two of them, taken together, tell more of one.

    Args:
        low: Client -> lower bounds, W × D; those of another shape than most, without an end, or open on a side
            that `LEAST` members close, are left out.
        high: Client -> upper bounds.
    """
    both = {name: np.stack([low[name], high[name]]) for name in sorted(low.keys() & high.keys())}
    shape = Counter(bounds.shape for bounds in both.values()).most_common(1)[0][0] if both else ()
    members = _closed([bounds for bounds in both.values() if bounds.shape == shape and np.isfinite(bounds).any()])
    if len(members) < LEAST:
        return {}
    middles = np.stack([middle(*bounds).ravel() for bounds in members])
    found = [weakest(*zip(*(members[k] for k in group), strict=True)) for group in alike(middles)]
    return {name: np.stack([phi[bound] for phi in found]) for name, bound in zip(POOLED, ("low", "high"), strict=True)}


def alike(points: NDArray[np.float64]) -> list[list[int]]:
    """Disjoint groups of `LEAST` points that lie close together; the last may have up to twice as many less one.

    The point farthest from the mean of those left takes the nearest ones: what lies at the edge has the least choice.
    """
    left, groups = np.arange(len(points)), []
    while len(left) >= 2 * LEAST:
        there = points[left]
        farthest = np.square(there - there.mean(0)).mean(1).argmax()
        order = np.square(there - there[farthest]).mean(1).argsort(kind="stable")
        groups.append(left[order[:LEAST]].tolist())
        left = np.sort(left[order[LEAST:]])
    return [*groups, left.tolist()]


def _closed(members: Sequence[Array]) -> list[Array]:
    """Those with every bound that `LEAST` of them have: one without it would take it from its whole group."""
    common = np.sum([np.isfinite(bounds) for bounds in members], axis=0) >= LEAST
    return [bounds for bounds in members if np.isfinite(bounds)[common].all()]
