"""Scales of the predictor's inputs and rewards (algorithms.md §4.3, the scale trap)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.arrays import Floats

MIN_REWARD_SCALE = 1e-6
"""Minimum divisor of rewards."""


@dataclass(frozen=True)
class Scales:
    """Scales of arms, contexts and rewards.

    Args:
        arms: First input of each arm, (K,).
        contexts: Divisors of contexts, (d,).
        reward: Divisor of rewards.
        limit: Maximum absolute scaled reward.
    """

    arms: Floats
    contexts: Floats
    reward: float
    limit: float

    def inputs(self, arms: NDArray[np.integer], contexts: Floats) -> Floats:
        """Return the predictor's inputs, (n, 1 + d), from arms (n,) and contexts (n, d)."""
        return np.column_stack([self.arms[arms], contexts / self.contexts])

    def rewards(self, rewards: Floats) -> Floats:
        """Return scaled and clipped rewards, (n,)."""
        return np.clip(rewards / self.reward, -self.limit, self.limit)


def standardize(costs: Floats, contexts: Floats, rewards: Floats) -> Scales:
    """Return scales to costs in [0, 1], contexts of mean 1 and rewards in [−1, 1].

    Args:
        costs: Costs of the arms, (K,), ascending.
        contexts: Contexts of stage 1, (n, d).
        rewards: Rewards of stage 1, (n,).
    """
    span = float(costs[-1] - costs[0])
    mean = contexts.mean(axis=0)
    largest = max(float(np.abs(rewards).max()), MIN_REWARD_SCALE)
    return Scales((costs - costs[0]) / (span or 1.0), np.where(mean > 0, mean, 1.0), largest, 1.0)


def identity_scales(arms: int, context: int) -> Scales:
    """Return scales that leave contexts and rewards unchanged; the input of an arm is its index."""
    return Scales(np.arange(arms, dtype=np.float64), np.ones(context), 1.0, np.inf)
