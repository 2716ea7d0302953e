"""Levels of cost, and which of them everybody can pay (algorithms.md §4.1, (3b)-(3d))."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

SLACK = 1e-9
"""Relative shortfall that is float rounding: a hundred times B/100 is not B. The cost is then what is left."""


@dataclass(frozen=True)
class Offer:
    """What one round may cost.

    Args:
        active: Clients that can pay the cheapest arm at least, sorted.
        retired: Clients that cannot, sorted.
        arms: A_t, the arms all active clients can pay; never empty.
        costs: (K,), what each arm costs; above what somebody has for arms outside `arms`.
        remaining: What each active client has left.
    """

    active: tuple[str, ...]
    retired: tuple[str, ...]
    arms: NDArray[np.intp]
    costs: FloatArray
    remaining: Mapping[str, float]


def cost_levels(total: float, rounds: int, t_min: float, k: int, spacing: Literal["linspace", "code"]) -> FloatArray:
    """(K,) costs between B/T_max and B/T_min, rising; `code` steps by 1/K of the way and stops short of the end.

    Args:
        total: B.
        rounds: T_max.
        t_min: T_min/T_max, in (0, 1].
        k: K.
        spacing: How the levels lie.
    """
    low = total / rounds
    return np.linspace(low, low / t_min, k, endpoint=spacing == "linspace")


def build_offer(costs: FloatArray, remaining: Mapping[str, float]) -> Offer:
    """A_t of the clients that can still pay; the others retire.

    Args:
        costs: (K,), rising.
        remaining: Client -> budget left; NaN and negative numbers can pay nothing.
    """
    cheapest = float(costs[0]) * (1 - SLACK)
    active = tuple(sorted(name for name, left in remaining.items() if left >= cheapest))
    retired = tuple(sorted(remaining.keys() - set(active)))
    least = min((remaining[name] for name in active), default=0.0)
    arms = np.flatnonzero(costs * (1 - SLACK) <= least)
    paid = np.where(costs * (1 - SLACK) <= least, np.minimum(costs, least), costs)
    return Offer(active, retired, arms, paid, {name: remaining[name] for name in active})
