"""Controls of BGTplanner: its arms without its predictions."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from common.arrays import Floats
from common.methods.planners import ArmOptions
from server.planning.arms import cost_levels
from server.planning.planner import Decision, Planner, RunBudget, Stop, open_round
from server.planning.state import PlannerState


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
