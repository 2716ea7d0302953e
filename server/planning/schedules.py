"""Schedules fixed before the first round: uniform (DPSGD), growing (ADPML), zero (algorithms.md §4.7)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from common.arrays import Floats
from common.methods.planners import PlannerOptions, Uniform
from server.planning.planner import Decision, Planner, RunBudget, Stop, open_round
from server.planning.state import PlannerState


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
