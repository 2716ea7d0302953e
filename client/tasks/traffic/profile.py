"""Weekly-profile baseline of the traffic task: mean reading per time of the week."""

import numpy as np

from common.arrays import Flags, Floats, Ints
from common.tasks.traffic.ranges import groups_of


def profile(values: Floats, slots: Ints, usable: Flags, week: int) -> Floats:
    """Compute the profile at every reading, T × D: the mean of its slot over the other usable readings.

    The reading itself is left out, and errors on the past are comparable with errors on the future. A slot without other
    readings gets the mean of the same hour of working days or weekends, else the mean of all readings.

    Args:
        values: Scaled readings, T × D.
        slots: Slot of the week of each reading, T.
        usable: True for readings of the training part, T.
        week: Number W of readings per week.
    """
    overall_mean = np.where(usable.any(), values[usable].mean(0, keepdims=True) if usable.any() else 0.0, 0.0)
    hours = groups_of("hourly", week)[slots]
    hourly = _leave_one_out_mean(values, hours, usable, np.broadcast_to(overall_mean, values.shape))
    return _leave_one_out_mean(values, slots, usable, hourly)


def _leave_one_out_mean(values: Floats, groups: Ints, usable: Flags, fallback: Floats) -> Floats:
    """Return the mean over the other usable readings of each reading's group, else the fallback."""
    size = int(groups.max()) + 1 if len(groups) else 0
    sums, counts = np.zeros((size, values.shape[1])), np.zeros(size)
    np.add.at(sums, groups[usable], values[usable])
    np.add.at(counts, groups[usable], 1)
    left = (counts[groups] - usable)[:, None]
    means = (sums[groups] - np.where(usable[:, None], values, 0)) / np.maximum(left, 1)
    return np.where(left > 0, means, fallback)
