"""Reward of a round (algorithms.md §4.1), and detection of a plateau."""

import math

import numpy as np

from common.arrays import Floats
from common.errors import RunError


def improvement(before: float, after: float, higher_is_better: bool = False) -> float:
    """Return r_t = RMSE_{t−1} − RMSE_t, or the negative for metrics of which higher is better.

    The same rule on the norm of the noisy mean update is a reward without privacy cost, but a weak one. The authors' code
    repeats the last value of a non-finite metric, which hides diverged training.

    Args:
        before: Metric of the previous round.
        after: Metric of this round.
        higher_is_better: True if higher values of the metric are better.

    Raises:
        RunError: A value is non-finite.
    """
    if not (math.isfinite(before) and math.isfinite(after)):
        raise RunError(
            f"training diverged (the planner's metric changed from {before} to {after}); lower lr, or use a planner without"
            " rewards"
        )
    return after - before if higher_is_better else before - after


def has_plateaued(rewards: Floats, patience: int, min_gain: float) -> bool:
    """Return True if the best of the last `patience` rounds gains at most `min_gain` over earlier ones.

    Args:
        rewards: Rewards of the rounds, (t,); their cumulative sum, from 0, is the quality of the model.
        patience: Number of last rounds.
        min_gain: Minimum gain, in the unit of rewards.
    """
    if len(rewards) < patience:
        return False
    quality = np.concatenate([[0.0], np.cumsum(rewards)])
    return bool(quality[-patience:].max() <= quality[:-patience].max() + min_gain)
