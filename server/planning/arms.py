"""Arms of planners: cost levels that all active clients can pay (algorithms.md §4.1, (3b)-(3d))."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from common.arrays import Floats

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


def cost_levels(total: float, rounds: int, t_min: float, k: int, spacing: Literal["linspace", "code"]) -> Floats:
    """Return K costs between B/T_max and B/T_min, ascending, (K,).

    Args:
        total: B.
        rounds: T_max.
        t_min: T_min/T_max, in (0, 1].
        k: K.
        spacing: `linspace` includes B/T_min; `code` has steps of 1/K of the interval and ends below it.
    """
    low = total / rounds
    return np.linspace(low, low / t_min, k, endpoint=spacing == "linspace")


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
