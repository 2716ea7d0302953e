"""Schedules fixed before the first round: uniform (DPSGD), growing (ADPML), zero (algorithms.md §4.7)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from common.arrays import Floats
from common.methods.planners import PlannerOptions
from server.planning.planner import Decision, Planner, RunBudget, Stop, open_round
from server.planning.state import PlannerState


@dataclass(frozen=True)
class Schedule(Planner):
    """Planner with a fixed cost for each round.

    Args:
        options: Early stopping.
        budget: B and T.
        costs: Costs of the rounds, (T,), not descending, of sum at most B.
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


def level_costs(budget: RunBudget) -> Floats:
    """Return B/T for each round, (T,)."""
    return np.full(budget.rounds, budget.share)


def growing_costs(budget: RunBudget, growth: float) -> Floats:
    """Return ε_t = ε_1 q^{t−1} with ε_T/ε_1 = growth and Σ ε_t = B, (T,)."""
    shape = np.geomspace(1.0, growth, budget.rounds)
    return np.asarray(budget.total * shape / shape.sum(), np.float64)


def zero_costs(budget: RunBudget) -> Floats:
    """Return 0 for each round, (T,): no noise."""
    return np.zeros(budget.rounds)
