"""A sensor's property as ranges by the clock (template 1, algorithms.md §3.2-3.3), and what obeying it means for forecasts.

`low` and `high` are tables over the W readings of a week, W × D, in units of the sensor's own scaler; reading w of the week
stands for one clock time of one day, Monday midnight first.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from common.arrays import Arrays

Floats = NDArray[np.float64]

DAY, TWO_HOURS, HOUR, WORKING_DAYS = 24 * 60, 120, 60, 5
PAIR = 2
"""Readings of one window in `rho_window`."""


@dataclass(frozen=True)
class Ranges:
    """⋀_w □_[w,w] (low_w ≤ x ≤ high_w)."""

    low: Floats
    high: Floats

    @property
    def width(self) -> float:
        """Mean of high − low, in standard deviations."""
        return float(np.mean(self.high - self.low))

    def widened(self, margin: float) -> "Ranges":
        """With that much more room on both sides."""
        return Ranges(self.low - margin, self.high + margin)

    def excess(self, traces: Floats, slots: NDArray[np.int64]) -> Floats:
        """How far readings lie outside, 0 inside; traces … × D at readings `slots` of the week."""
        return np.maximum(np.maximum(self.low[slots] - traces, traces - self.high[slots]), 0)

    def corrected(self, traces: Floats, slots: NDArray[np.int64]) -> Floats:
        """The closest traces that obey, in L1 and in L2: the teacher's forecasts (§3.4)."""
        return np.clip(traces, self.low[slots], self.high[slots])

    def arrays(self) -> Arrays:
        """As they travel."""
        return {"low": self.low.astype(np.float32), "high": self.high.astype(np.float32)}


def groups_of(kind: Literal["hourly", "paper"], week: int) -> NDArray[np.int64]:
    """Which readings of a week share a range, W: the same hour of working days or of the weekend, or two hours of any day."""
    minutes = np.arange(week) * (7 * DAY // week)
    if kind == "paper":
        return np.asarray((minutes % DAY) // TWO_HOURS)
    return np.asarray((minutes // DAY >= WORKING_DAYS) * (DAY // HOUR) + (minutes % DAY) // HOUR)


def infer(values: Floats, slots: NDArray[np.int64], groups: NDArray[np.int64]) -> Ranges:
    """The tightest ranges that hold on all of `values`, T × D; a group never seen gets the range of everything.

    Raises:
        ValueError: There is no value.
    """
    if not len(values):
        raise ValueError("no reading to infer a property from")
    count, members = int(groups.max()) + 1, groups[slots]
    low = np.full((count, values.shape[1]), np.inf)
    high = np.full((count, values.shape[1]), -np.inf)
    np.minimum.at(low, members, values)
    np.maximum.at(high, members, values)
    low, high = np.where(low > high, values.min(0), low), np.where(low > high, values.max(0), high)
    return Ranges(low[groups], high[groups])


def calibrated(
    values: Floats, slots: NDArray[np.int64], days: NDArray[np.int64], groups: NDArray[np.int64], coverage: float
) -> tuple[Ranges, float]:
    """Ranges widened by one margin until `coverage` of the past days obey, each judged without its own week.

    Args:
        values: Readings, T × D.
        slots: Which reading of the week each is, T.
        days: Which day each belongs to, T; seven consecutive numbers, from a multiple of seven, are a week.
        groups: As in `infer`.
        coverage: Share of days.

    Returns:
        The ranges, and the share of past days they held on. Less than two weeks cannot be judged: plain ranges, share NaN.
    """
    plain, weeks = infer(values, slots, groups), np.unique(days // 7)
    if len(weeks) < 2:
        return plain, float("nan")
    worst: list[float] = []
    for week in weeks:
        inside = days // 7 == week
        others = infer(values[~inside], slots[~inside], groups)
        excess = others.excess(values[inside], slots[inside]).max(axis=1)
        worst += [float(excess[days[inside] == day].max()) for day in np.unique(days[inside])]
    rank = min(len(worst), int(np.ceil(coverage * (len(worst) + 1))))
    margin = float(np.sort(worst)[rank - 1])
    return plain.widened(margin), float(np.mean(np.array(worst) <= margin))


def obedience(excess: Floats) -> dict[str, float]:
    """rho_point, rho_window, rho_trace: shares of readings, of pairs of readings and of traces that obey (§3.9).

    Args:
        excess: N × P × D of `Ranges.excess`.
    """
    obeys = np.max(excess, axis=2) <= 0
    even = obeys[:, : obeys.shape[1] // PAIR * PAIR].reshape(len(obeys), -1, PAIR)
    return {
        "rho_point": float(obeys.mean()),
        "rho_window": float(even.all(axis=2).mean()) if even.size else float(obeys.mean()),
        "rho_trace": float(obeys.all(axis=1).mean()),
    }
