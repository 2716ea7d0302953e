"""ADAP: less noise while the loss decreases; the clip norm follows the updates (algorithms.md §4.7).

Parameters that the paper does not state are our own.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from common.arrays import Floats
from common.methods.planners import ADAP
from server.planning.planner import Decision, Planner, RunBudget, Stop, open_round
from server.planning.state import PlannerState, PlayedRounds


@dataclass(frozen=True)
class AdaptiveNoise(Planner):
    """ADAP planner: arm j is the even share with the noise multiplier times β^j, up to cost B.

    Args:
        options: β and the rule of the clip norm.
        budget: B, T and the exponent of the noise in the cost.
    """

    options: ADAP
    budget: RunBudget

    @property
    def costs(self) -> Floats:
        """Costs of the arms, (J,), ascending: s·β^{−pj} up to B with the even share s; s alone if β = 1."""
        step = self.budget.power * -math.log(self.options.beta)
        count = 1 + int(math.log(self.budget.participations) / step) if step else 1
        return np.asarray(self.budget.share * np.exp(step * np.arange(count)), np.float64)

    def decide(
        self, state: PlannerState, context: Floats, remaining: Mapping[str, float], rng: np.random.Generator
    ) -> Decision | Stop:
        """Return the arm of the number of decays so far, or the most expensive affordable arm."""
        offer = open_round(state, self.options, self.budget, self.costs, remaining)
        if isinstance(offer, Stop):
            return offer
        arm = min(count_decays(state.history.rewards, self.options.falls), int(offer.arms[-1]))
        p = np.eye(len(offer.costs))[arm]
        clip = self._clip(state.history)
        return Decision(arm, float(offer.costs[arm]), offer.active, offer.retired, probabilities=p, clip=clip)

    def _clip(self, history: PlayedRounds) -> float:
        """Return a multiple of the last noisy norm, at most 1, or noise alone would increase it forever."""
        if not len(history):
            return 1.0
        return float(np.clip(self.options.clip_factor * history.norms[-1], self.options.clip_floor, 1.0))


def count_decays(rewards: Floats, falls: int) -> int:
    """Return the number of disjoint runs of `falls` consecutive positive rewards (falling losses).

    Args:
        rewards: Rewards of the rounds, (t,).
        falls: Length of a run.
    """
    count = streak = 0
    for reward in rewards:
        streak = streak + 1 if reward > 0 else 0
        if streak == falls:
            count, streak = count + 1, 0
    return count
