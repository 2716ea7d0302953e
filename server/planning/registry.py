"""Registry of planners, with schedules fixed before the first round; pure functions without Flower and torch.

The strategy calls `decide` before a round and `observe` after it; a planner stores everything in a `PlannerState`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from common.arrays import Floats
from common.errors import ConfigError
from common.methods.planners import (
    ADAP,
    ADPML,
    ArmOptions,
    BGTplanner,
    FedSGD,
    FixedArm,
    PlannerOptions,
    RandomArm,
    Uniform,
)
from server.planning.planner import Decision, Planner, RunBudget, Stop, cost_levels, open_round
from server.planning.state import PlannerState, PlayedRounds


@dataclass(frozen=True)
class Schedule(Planner):
    """Planner with a fixed cost for each round.

    Args:
        options: Early stopping.
        budget: B and T.
        costs: Costs of the rounds, (T,), not descending; a client's expected sum is at most B.
    """

    options: PlannerOptions
    budget: RunBudget
    costs: Floats

    def decide(
        self, state: PlannerState, context: Floats, remaining: Mapping[str, float], rng: np.random.Generator
    ) -> Decision | Stop:
        """Return the cost of the round, for all clients that can pay it."""
        t = len(state.history)
        offer = open_round(state, self.options, self.budget, self.costs[t : t + 1], remaining)
        if isinstance(offer, Stop):
            return offer
        return Decision(0, float(offer.costs[0]), offer.active, offer.retired)


def even_split(options: Uniform, budget: RunBudget) -> Schedule:
    """Return the schedule of an even share for each of the first R rounds, after which the run ends."""
    limited = replace(budget, rounds=min(options.rounds or budget.rounds, budget.rounds))
    return Schedule(options, limited, np.full(limited.rounds, limited.share))


def growing_costs(budget: RunBudget, growth: float) -> Floats:
    """Return ε_t = ε_1 q^{t−1} with ε_T/ε_1 = growth and an even share as mean, (T,)."""
    shape = np.geomspace(1.0, growth, budget.rounds)
    return np.asarray(budget.share * budget.rounds * shape / shape.sum(), np.float64)


def zero_costs(budget: RunBudget) -> Floats:
    """Return 0 for each round, (T,): no noise."""
    return np.zeros(budget.rounds)


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


def build_bandit(options: BGTplanner, budget: RunBudget) -> Planner:
    """Build BGTplanner; the linear programs and kernels of SciPy are loaded with it."""
    from server.planning.bgt import BanditPlanner

    return BanditPlanner(options, budget)


BUILD: dict[str, Callable[[Any, RunBudget], Planner]] = {
    BGTplanner.name: build_bandit,
    ADAP.name: AdaptiveNoise,
    RandomArm.name: ArmControl,
    FixedArm.name: lambda options, budget: ArmControl(options, budget, options.arm),
    Uniform.name: even_split,
    ADPML.name: lambda options, budget: Schedule(options, budget, growing_costs(budget, options.growth)),
    FedSGD.name: lambda options, budget: Schedule(options, budget, zero_costs(budget)),
}


def build_planner(options: PlannerOptions, budget: RunBudget) -> Planner:
    """Build the planner of these options.

    Raises:
        ConfigError: The run has no privacy budget.
    """
    if options.needs_noise and not (budget.total > 0 and math.isfinite(budget.total)):
        raise ConfigError(f"{options.name} plans a privacy budget; set privacy.unit=client or method=fedsgd")
    return BUILD[options.name](options, budget)
