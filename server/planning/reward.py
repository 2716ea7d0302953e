"""What a round gained (algorithms.md §4.1), and whether rounds still gain anything."""

import math

import numpy as np

from common.errors import RunError
from server.planning.arms import FloatArray


def improvement(before: float, after: float, rises: bool = False) -> float:
    """r_t = RMSE_{t−1} − RMSE_t of the permitted channel, or the other way round where a good metric `rises`.

    The same rule makes a free, weak proxy of the norm of the noisy mean update.

    Raises:
        RunError: Either is NaN or infinite. The authors' code repeats the last value, which hides that training diverges.
    """
    if not (math.isfinite(before) and math.isfinite(after)):
        raise RunError(
            f"the metric that planning goes by went from {before} to {after}: training diverges; lower the learning "
            "rate, or choose a planner that needs no reward"
        )
    return after - before if rises else before - after


def plateaued(rewards: FloatArray, patience: int, min_gain: float) -> bool:
    """Whether the best of the last `patience` rounds is no more than `min_gain` better than the best before them.

    Args:
        rewards: (t,), what each round gained; their running sum is how good the model was, from 0 at the start.
        patience: Rounds.
        min_gain: In the unit of rewards.
    """
    if len(rewards) < patience:
        return False
    quality = np.concatenate([[0.0], np.cumsum(rewards)])
    return bool(quality[-patience:].max() <= quality[:-patience].max() + min_gain)
