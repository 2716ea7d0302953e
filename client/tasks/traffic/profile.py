"""The local line of the traffic task: what this sensor usually reads at this time of the week."""

import numpy as np
from numpy.typing import NDArray

from common.tasks.traffic.ranges import groups_of

Floats = NDArray[np.float64]


def profile(values: Floats, slots: NDArray[np.int64], known: NDArray[np.bool_], week: int) -> Floats:
    """The profile at every reading, T × D: the mean of that reading of the week over the known readings but its own.

    Leaving a reading's own week out makes the past look as new as the future. Where there is no other such week it is the
    mean of the same hour of working days or weekends, then of everything.

    Args:
        values: Scaled readings, T × D.
        slots: Which reading of the week each is, T.
        known: Which readings may be used: the training part's, T.
        week: Readings a week, W.
    """
    everything = np.where(known.any(), values[known].mean(0, keepdims=True) if known.any() else 0.0, 0.0)
    kinds = groups_of("hourly", week)[slots]
    rough = _mean_of_others(values, kinds, known, np.broadcast_to(everything, values.shape))
    return _mean_of_others(values, slots, known, rough)


def _mean_of_others(values: Floats, groups: NDArray[np.int64], known: NDArray[np.bool_], otherwise: Floats) -> Floats:
    """Mean over the other known members of a reading's group, `otherwise` where it has none."""
    size = int(groups.max()) + 1 if len(groups) else 0
    sums, counts = np.zeros((size, values.shape[1])), np.zeros(size)
    np.add.at(sums, groups[known], values[known])
    np.add.at(counts, groups[known], 1)
    left = (counts[groups] - known)[:, None]
    others = (sums[groups] - np.where(known[:, None], values, 0)) / np.maximum(left, 1)
    return np.where(left > 0, others, otherwise)
