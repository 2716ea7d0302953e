"""What the predictor sees of arms, contexts and rewards (algorithms.md §4.3, the scale trap)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from server.planning.arms import FloatArray

MIN_REWARD_SCALE = 1e-6
"""Floor of the rewards' scale."""


@dataclass(frozen=True)
class Scales:
    """How numbers become inputs.

    Args:
        arms: (K,), an arm's place on the predictor's first axis.
        contexts: (d,), divisors.
        reward: Divisor.
        limit: Largest absolute reward after that.
    """

    arms: FloatArray
    contexts: FloatArray
    reward: float
    limit: float

    def inputs(self, arms: NDArray[np.integer], contexts: FloatArray) -> FloatArray:
        """(n, 1 + d) from arms (n,) and contexts (n, d)."""
        return np.column_stack([self.arms[arms], contexts / self.contexts])

    def rewards(self, rewards: FloatArray) -> FloatArray:
        """(n,) from (n,)."""
        return np.clip(rewards / self.reward, -self.limit, self.limit)


def standardize(costs: FloatArray, contexts: FloatArray, rewards: FloatArray) -> Scales:
    """Arms by cost in [0, 1], contexts over their mean and rewards over their largest |r|.

    Args:
        costs: (K,), rising.
        contexts: (n, d) of stage 1.
        rewards: (n,) of stage 1.
    """
    span = float(costs[-1] - costs[0])
    mean = contexts.mean(axis=0)
    largest = max(float(np.abs(rewards).max()), MIN_REWARD_SCALE)
    return Scales((costs - costs[0]) / (span or 1.0), np.where(mean > 0, mean, 1.0), largest, 1.0)


def identity_scales(arms: int, context: int) -> Scales:
    """Numbers as they are: K arms by index, d singular values, rewards in their own unit."""
    return Scales(np.arange(arms, dtype=np.float64), np.ones(context), 1.0, np.inf)
