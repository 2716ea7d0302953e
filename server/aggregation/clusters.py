"""Several models: initial copies, assignment of clients, pooled properties. Pure, NumPy."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from common.arrays import Array, Arrays, add_prefix
from common.methods.base import choose_lowest


def spread_copies(model: Arrays, clusters: int, spread: float, seed: int) -> Arrays:
    """Return K copies as `0/name`, `1/name` …, all but the first with added Gaussian noise.

    The noise has `spread` times each layer's own standard deviation; its generator is seeded by (seed, clusters).
    """
    rng = np.random.default_rng([seed, clusters])
    copies: Arrays = add_prefix("0", model)
    for j in range(1, clusters):
        moved = {n: (a + rng.normal(size=a.shape) * spread * a.std()).astype(a.dtype) for n, a in model.items()}
        copies |= add_prefix(str(j), moved)
    return copies


def assign_clusters(losses: Mapping[str, Sequence[float]], rule: Literal["argmin", "capacity"]) -> dict[str, int]:
    """Return client -> cluster, from each client's loss under each of the K models.

    `argmin` takes each client's lowest loss; a hash of the name breaks ties. `capacity` processes all pairs from the lowest
    loss on and fills clusters evenly (algorithms.md §3.6).
    """
    if rule == "argmin":
        return {name: choose_lowest(name, row) for name, row in losses.items()}
    clusters = len(next(iter(losses.values()), ()))
    room = dict.fromkeys(range(clusters), -(-len(losses) // max(clusters, 1)))
    pairs = sorted((loss, name, j) for name, row in losses.items() for j, loss in enumerate(row))
    chosen: dict[str, int] = {}
    for _, name, j in pairs:
        if name not in chosen and room[j]:
            chosen[name] = j
            room[j] -= 1
    return chosen


def pool_ranges(low: Sequence[Array], high: Sequence[Array]) -> Arrays:
    """Return φ_j, the tightest ranges on all members' data: min of lower, max of upper bounds (§3.7).

    Bounds of a shape other than the most common one are left out, so that one client cannot stop the others.
    """
    shape = Counter(a.shape for a in low).most_common(1)[0][0]
    fitting = [k for k, a in enumerate(low) if a.shape == shape]
    return {"low": np.min([low[k] for k in fitting], axis=0), "high": np.max([high[k] for k in fitting], axis=0)}
