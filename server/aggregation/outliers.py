"""Updates far from the others. Pure, NumPy."""

from collections.abc import Mapping

import numpy as np

from common.arrays import Arrays, norm

FAR = 3.0
"""Multiple of the median distance from the coordinate-wise median, beyond which an update is far."""


def find_outliers(updates: Mapping[str, Arrays]) -> list[str]:
    """Return the clients whose updates are far from the coordinate-wise median, less than half of them.

    If none is that far, the farthest one counts. Of fewer than three updates, none is singled out.
    """
    if len(updates) < 3:
        return []
    middle = {name: np.median([u[name] for u in updates.values()], axis=0) for name in next(iter(updates.values()))}
    distances = {client: norm({n: u[n] - a for n, a in middle.items()}) for client, u in updates.items()}
    limit = FAR * float(np.median([*distances.values()]))
    farthest = sorted(distances, key=lambda client: -distances[client])[: (len(updates) - 1) // 2]
    far = [client for client in farthest if distances[client] > limit]
    return far or [client for client in farthest[:1] if distances[client]]
