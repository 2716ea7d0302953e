"""Registry of planners, and schedules that are fixed before the first round.

The strategy calls `decide` before a round and `observe` after it; a planner stores everything in a `PlannerState`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from common.arrays import Floats
from common.errors import ConfigError
from common.methods import planners
from common.methods.planners import BGTplanner, PlannerOptions, Uniform
from common.registry import Registry, expect, naming_packages
from server.planning.planner import Decision, Planner, RunBudget, ServerPlanner, Stop, open_round
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

    def __post_init__(self) -> None:
        """Check the costs."""
        if np.shape(self.costs) != (self.budget.rounds,) or not np.all(np.asarray(self.costs) >= 0):
            raise ValueError(f"a schedule has {self.budget.rounds} costs of at least 0, not {self.costs}")

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
    limited = replace(budget, rounds=options.limit(budget.rounds))
    return Schedule(options, limited, np.full(limited.rounds, limited.share))


def build_bandit(options: BGTplanner, budget: RunBudget) -> Planner:
    """Build BGTplanner; the linear programs and kernels of SciPy are loaded with it."""
    from server.planning.bgt import BanditPlanner

    return BanditPlanner(options, budget)


BGTPLANNER = ServerPlanner(planners.BGTPLANNER, build_bandit)
UNIFORM = ServerPlanner(planners.UNIFORM, even_split)

SERVER_PLANNERS: Registry[ServerPlanner] = Registry(
    "planner",
    "fedloom.planners.server",
    ServerPlanner,
    {"bgtplanner": "server.planning.registry:BGTPLANNER", "uniform": "server.planning.registry:UNIFORM"},
)


def build_planner(options: PlannerOptions, budget: RunBudget) -> Planner:
    """Build the planner of these options.

    Raises:
        ConfigError: The run has no privacy budget, or the planner's package cannot be imported.
    """
    if options.needs_noise and not (budget.total > 0 and math.isfinite(budget.total)):
        raise ConfigError(f"{options.name} plans a privacy budget; set privacy.unit=client")
    with naming_packages(SERVER_PLANNERS.packages(options.name)):
        return cast(Planner, expect(SERVER_PLANNERS[options.name].build(options, budget), Planner))
