"""Arms of planners: cost levels that all active clients can pay (algorithms.md §4.1, (3b)-(3d))."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.arrays import Floats
from common.methods.planners import ArmOptions

SLACK = 1e-9
"""Relative shortfall that counts as rounding: 100·(B/100) ≠ B in floats. The cost is then the
remaining budget."""


@dataclass(frozen=True)
class Offer:
    """Affordable arms of one round.

    Args:
        active: Clients that can pay at least the cheapest arm, sorted.
        retired: Clients that cannot pay any arm, sorted.
        arms: A_t, the indices of the arms that all active clients can pay; not empty if there is an active client.
        costs: Costs of all arms, (K,).
        remaining: Remaining budget of each active client.
    """

    active: tuple[str, ...]
    retired: tuple[str, ...]
    arms: NDArray[np.intp]
    costs: Floats
    remaining: Mapping[str, float]


def cost_levels(share: float, options: ArmOptions) -> Floats:
    """Return the costs of the arms, ascending, (K,).

    Args:
        share: B/T_max.
        options: K and the kind of the arms. `paper`: from B/T_max to B/T_min, which `spacing=code` does not reach.
            `wide`: each twice the one before, from half of B/T_max.
    """
    k = options.arms
    if options.arms_kind == "wide":
        return np.asarray(share * 2.0 ** np.arange(-1, k - 1), np.float64)
    return np.linspace(share, share / options.t_min, k, endpoint=options.spacing == "linspace")


def build_offer(costs: Floats, remaining: Mapping[str, float]) -> Offer:
    """Return the arms A_t that all active clients can pay; clients that cannot pay any arm retire.

    Args:
        costs: Costs of the arms, (K,), ascending.
        remaining: Client -> remaining budget; NaN and negative numbers pay nothing.
    """
    cheapest = float(costs[0]) * (1 - SLACK)
    active = tuple(sorted(name for name, budget in remaining.items() if budget >= cheapest))
    retired = tuple(sorted(remaining.keys() - set(active)))
    minimum = min((remaining[name] for name in active), default=0.0)
    arms = np.flatnonzero(costs * (1 - SLACK) <= minimum)
    charged = np.where(costs * (1 - SLACK) <= minimum, np.minimum(costs, minimum), costs)
    return Offer(active, retired, arms, charged, {name: remaining[name] for name in active})
