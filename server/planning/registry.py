"""Registry of planners: pure functions without Flower and torch; built in only.

The strategy calls `decide` before a round and `observe` after it; a planner stores everything in a `PlannerState`.
"""

import math
from collections.abc import Callable
from typing import Any

from common.errors import ConfigError
from common.methods.planners import ADAP, ADPML, BGTplanner, FedSGD, FixedArm, PlannerOptions, RandomArm, Uniform
from server.planning.adap import AdaptiveNoise
from server.planning.controls import ArmControl
from server.planning.planner import Planner, RunBudget
from server.planning.schedules import Schedule, even_split, growing_costs, zero_costs


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
