"""Updates far from the others. Pure, NumPy."""

from collections.abc import Callable, Mapping

import numpy as np

from common.arrays import Array, Arrays, norm

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
    size, parts = AT_ONCE // len(updates) + 1, []
    for start in range(0, max(like.size, 1), size):
        rows = [load()[name].reshape(-1)[start : start + size].copy() for load in updates.values()]
        parts.append(np.median(rows, axis=0))
    return np.concatenate(parts).reshape(like.shape)


def _distance(update: Arrays, middle: Arrays) -> float:
    return norm({name: update[name] - a for name, a in middle.items()})
