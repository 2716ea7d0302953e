"""Planning how much of the privacy budget each round spends; pure maths, knowing neither Flower nor torch.

The strategy asks `decide` before a round and tells `observe` what it gained; all a planner knows is in a `State`.
"""

import math
from typing import assert_never

from common.errors import ConfigError
from common.methods.planners import ADAP, ADPML, BGTplanner, FedSGD, Uniform
from server.planning.adap import AdaptiveNoise
from server.planning.bgt import BanditPlanner
from server.planning.planner import Budget, Planner
from server.planning.schedules import Schedule, free, growing, level

PlannerOptions = BGTplanner | Uniform | ADPML | ADAP | FedSGD


def build_planner(options: PlannerOptions, budget: Budget) -> Planner:
    """The planner of these options.

    Raises:
        ConfigError: There is no budget to plan.
    """
    if not isinstance(options, FedSGD) and not (budget.total > 0 and math.isfinite(budget.total)):
        raise ConfigError(f"{options.name} plans a privacy budget; set privacy.unit=client, or choose method fedsgd")
    match options:
        case BGTplanner():
            return BanditPlanner(options, budget)
        case ADAP():
            return AdaptiveNoise(options, budget)
        case Uniform():
            return Schedule(options, budget, level(budget))
        case ADPML():
            return Schedule(options, budget, growing(budget, options.growth))
        case FedSGD():
            return Schedule(options, budget, free(budget))
        case _:
            assert_never(options)
