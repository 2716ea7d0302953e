"""Registry of planners: pure maths without Flower or torch, built in only.

The strategy calls `decide` before a round and `observe` after it; all that a planner learns is in a `State`.
"""

import math
from collections.abc import Callable
from typing import Any

from common.errors import ConfigError
from common.methods.planners import ADAP, ADPML, BGTplanner, FedSGD, PlannerOptions, Uniform
from server.planning.adap import AdaptiveNoise
from server.planning.bgt import BanditPlanner
from server.planning.planner import Budget, Planner
from server.planning.schedules import Schedule, free, growing, level

BUILD: dict[str, Callable[[Any, Budget], Planner]] = {
    BGTplanner.name: BanditPlanner,
    ADAP.name: AdaptiveNoise,
    Uniform.name: lambda options, budget: Schedule(options, budget, level(budget)),
    ADPML.name: lambda options, budget: Schedule(options, budget, growing(budget, options.growth)),
    FedSGD.name: lambda options, budget: Schedule(options, budget, free(budget)),
}


def build_planner(options: PlannerOptions, budget: Budget) -> Planner:
    """Build the planner of these options.

    Raises:
        ConfigError: There is no budget to plan.
    """
    if options.needs_noise and not (budget.total > 0 and math.isfinite(budget.total)):
        raise ConfigError(f"{options.name} plans a privacy budget; set privacy.unit=client, or choose method fedsgd")
    return BUILD[options.name](options, budget)
