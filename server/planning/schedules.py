"""Plans that are made before the first round: DPSGD's uniform one, ADPML's growing one, and none (algorithms.md §4.7)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from common.methods.planners import PlannerOptions
from server.planning.arms import FloatArray
from server.planning.planner import Budget, Decision, Stop, opening, recorded
from server.planning.state import State, blank


@dataclass(frozen=True)
class Schedule:
    """Round t costs what was written down for it.

    Args:
        options: When to stop.
        budget: B and T.
        costs: (T,), rising or level, of sum B at most.
    """

    options: PlannerOptions
    budget: Budget
    costs: FloatArray

    def start(self) -> State:
        """Before the first round."""
        return blank()

    def decide(
        self, state: State, context: FloatArray, remaining: Mapping[str, float], rng: np.random.Generator
    ) -> Decision | Stop:
        """This round's cost, for everybody who can pay it."""
        t = len(state.history)
        offered = opening(state, self.options, self.budget, self.costs[t : t + 1], remaining)
        if isinstance(offered, Stop):
            return offered
        return Decision(0, float(offered.costs[0]), offered.active, offered.retired)

    def observe(
        self,
        state: State,
        decision: Decision,
        reward: float,
        spent: Mapping[str, float] | None = None,
        update_norm: float = 1.0,
    ) -> State:
        """One round more."""
        return recorded(state, decision, reward, update_norm)


def level(budget: Budget) -> FloatArray:
    """(T,): B/T each."""
    return np.full(budget.rounds, budget.share)


def growing(budget: Budget, growth: float) -> FloatArray:
    """(T,): ε_t = ε_1 q^{t−1} with ε_T/ε_1 = growth and Σ ε_t = B."""
    shape = np.geomspace(1.0, growth, budget.rounds)
    return np.asarray(budget.total * shape / shape.sum(), np.float64)


def free(budget: Budget) -> FloatArray:
    """(T,): nothing, which means no noise."""
    return np.zeros(budget.rounds)
