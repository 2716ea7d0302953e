"""Planners that are compared with BGTplanner (algorithms.md §4.7).

Parameters that the papers do not state are our own.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from common.api import ArmOptions, Floats
from fedloom_planners import options as specs
from server.api import (
    Decision,
    Planner,
    PlannerState,
    PlayedRounds,
    RunBudget,
    Schedule,
    ServerPlanner,
    Stop,
    cost_levels,
    open_round,
)


@dataclass(frozen=True)
class ArmControl(Planner):
    """Planner that draws an arm uniformly, or always takes the same one.

    Args:
        options: K, T_min and the spacing of the arms.
        budget: B and T.
        arm: The arm to take, or the most expensive affordable one below it; negative to draw one.
    """

    options: ArmOptions
    budget: RunBudget
    arm: int = -1

    def decide(
        self, state: PlannerState, context: Floats, remaining: Mapping[str, float], rng: np.random.Generator
    ) -> Decision | Stop:
        """Return an affordable arm."""
        o, budget = self.options, self.budget
        offer = open_round(state, o, budget, cost_levels(budget.share, o), remaining)
        if isinstance(offer, Stop):
            return offer
        arms = offer.arms if self.arm < 0 else offer.arms[offer.arms <= self.arm][-1:]
        p = np.zeros(o.arms)
        p[arms] = 1 / len(arms)
        chosen = int(rng.choice(o.arms, p=p))
        return Decision(chosen, float(offer.costs[chosen]), offer.active, offer.retired, probabilities=p)


@dataclass(frozen=True)
class AdaptiveNoise(Planner):
    """ADAP planner: arm j is the even share with the noise multiplier times β^j, up to cost B.

    Args:
        options: β and the rule of the clip norm.
        budget: B, T and the exponent of the noise in the cost.
    """

    options: specs.ADAP
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


def growing_costs(budget: RunBudget, growth: float) -> Floats:
    """Return ε_t = ε_1 q^{t−1} with ε_T/ε_1 = growth and an even share as mean, (T,)."""
    shape = np.geomspace(1.0, growth, budget.rounds)
    return np.asarray(budget.share * budget.rounds * shape / shape.sum(), np.float64)


RANDOM_ARM = ServerPlanner(specs.RANDOM_ARM, ArmControl)
FIXED_ARM = ServerPlanner(specs.FIXED_ARM, lambda chosen, budget: ArmControl(chosen, budget, chosen.arm))
ADPML = ServerPlanner(
    specs.ADPML_SPEC, lambda chosen, budget: Schedule(chosen, budget, growing_costs(budget, chosen.growth))
)
ADAP = ServerPlanner(specs.ADAP_SPEC, AdaptiveNoise)
FEDSGD = ServerPlanner(specs.FEDSGD, lambda chosen, budget: Schedule(chosen, budget, np.zeros(budget.rounds)))
"""FedSGD: no noise, so each round costs 0."""
