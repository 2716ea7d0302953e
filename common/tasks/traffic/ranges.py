"""Property of a sensor as ranges by hour of the week (template 1, algorithms.md §3.2-3.3).

`low` and `high` are tables over the W rows of a week, W × D, in units of the sensor's scaler. A row is an hour, from Monday
midnight, or a step if steps are longer than an hour.
"""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Self

import numpy as np

from common.arrays import Arrays, Floats, Ints
from common.tasks.traffic.vocabulary import DAY, HOUR

TWO_HOURS, WORKING_DAYS, TWO_WEEKS = 2 * HOUR, 5, 14
PAIR = 2
"""Number of readings of a window in `rho_window`."""
POOLED = "property.low", "property.high"
"""Names of the untrained inputs that hold pooled properties of G groups, G × W × D each.

They serve cold-start clients.
"""


@dataclass(frozen=True)
class Ranges:
    """Range property ⋀_w □_[w,w] (low_w ≤ x ≤ high_w)."""

    low: Floats
    high: Floats

    @property
    def width(self) -> float:
        """Mean of high − low, in standard deviations; NaN for one-sided bounds."""
        return float(np.mean(self.high - self.low))

    def widen(self, margin: float) -> Self:
        """Return the property with both bounds moved outwards by a margin."""
        return replace(self, low=self.low - margin, high=self.high + margin)

    def weaken(self, low: Floats, high: Floats) -> Self:
        """Return the tightest property that allows all traces of this one and of other bounds."""
        return replace(self, low=np.minimum(self.low, low), high=np.maximum(self.high, high))

    def bounded_values(self, traces: Floats) -> Floats:
        """Return the values that the bounds restrict: the readings, … × D."""
        return traces

    def excess(self, traces: Floats, rows: Ints) -> Floats:
        """Return the distance of each reading to the closest satisfying trace, … × D; 0 if it is satisfied.

        Args:
            traces: Readings, … × D.
            rows: Row of the week of each reading, ….
        """
        return np.maximum(np.maximum(self.low[rows] - traces, traces - self.high[rows]), 0)

    def project(self, traces: Floats, rows: Ints) -> Floats:
        """Return the closest satisfying traces in L1 and L2, the teacher's forecasts (§3.4)."""
        return np.clip(traces, self.low[rows], self.high[rows])

    def limits(self, traces: Floats, rows: Ints) -> tuple[Floats, Floats]:
        """Return lower and upper bounds of each single reading, … × D; NaN without bounds."""
        return self.low[rows], self.high[rows]

    def arrays(self) -> Arrays:
        """Return the arrays of a message."""
        return {"low": self.low.astype(np.float32), "high": self.high.astype(np.float32)}


class Calibrated(NamedTuple):
    """Widened ranges and the share of past days that satisfied them.

    Args:
        ranges: Widened ranges.
        held: Share of tested days that satisfied them, each without its own week; NaN if no day was tested.
        seen: Share of observed readings of the tested days, 1 for complete days; NaN if no day was tested.
    """

    ranges: Ranges
    held: float
    seen: float


def rows_per_week(step: int) -> int:
    """Return W for steps of that many seconds."""
    return 7 * DAY // max(step, HOUR)


def groups_of(kind: Literal["hourly", "paper"], week: int) -> Ints:
    """Return the range's index of each of `week` rows or readings of a week.

    `hourly`: one range per hour of working days and of weekends; `paper`: one range per two hours of any day.
    """
    seconds = np.arange(week) * (7 * DAY // week)
    if kind == "paper":
        return np.asarray((seconds % DAY) // TWO_HOURS)
    return np.asarray((seconds // DAY >= WORKING_DAYS) * (DAY // HOUR) + (seconds % DAY) // HOUR)


def infer(values: Floats, rows: Ints, groups: Ints) -> Ranges:
    """Infer the tightest ranges that all values satisfy; a group without values gets the range of all.

    Args:
        values: Readings, T × D.
        rows: Row of the week of each reading, T.
        groups: Index of the range of each row, W.

    Raises:
        ValueError: There is no value.
    """
    if not len(values):
        raise ValueError("cannot infer a property without readings")
    count, groups_of_values = int(groups.max()) + 1, groups[rows]
    low = np.full((count, values.shape[1]), np.inf)
    high = np.full((count, values.shape[1]), -np.inf)
    np.minimum.at(low, groups_of_values, values)
    np.maximum.at(high, groups_of_values, values)
    low, high = np.where(low > high, values.min(0), low), np.where(low > high, values.max(0), high)
    return Ranges(low[groups], high[groups])


def calibrate(
    values: Floats,
    rows: Ints,
    days: Ints,
    groups: Ints,
    coverage: float,
    day_readings: int,
) -> Calibrated:
    """Widen ranges by one margin until the share `coverage` of past days satisfies them.

    Each day is tested without its own week. Complete days are tested if there are two weeks of them. Otherwise all days are
    tested; an incomplete day violates ranges less often, the margin is then too small, and `seen` is below 1. With less than
    two weeks of readings the ranges are not widened.

    Args:
        values: Readings, T × D.
        rows: Row of the week of each reading, T.
        days: Day of each reading, T; days 7k to 7k + 6 are a week.
        groups: Index of the range of each row, W.
        coverage: Share of days.
        day_readings: Number of readings of a complete day.
    """
    plain = infer(values, rows, groups)
    if len(values) < TWO_WEEKS * day_readings:  # a part of a week may have no weekend
        return Calibrated(plain, float("nan"), float("nan"))
    tested_days, readings = np.unique(days, return_counts=True)
    if (readings == day_readings).sum() >= TWO_WEEKS:
        tested_days, readings = tested_days[readings == day_readings], readings[readings == day_readings]
    worst: list[float] = []
    for week in np.unique(tested_days // 7):
        inside = days // 7 == week
        other_weeks = infer(values[~inside], rows[~inside], groups)
        excess = other_weeks.excess(values[inside], rows[inside]).max(axis=1)
        worst += [float(excess[days[inside] == day].max()) for day in tested_days[tested_days // 7 == week]]
    rank = min(len(worst), int(np.ceil(coverage * (len(worst) + 1))))
    margin = float(np.sort(worst)[rank - 1])
    return Calibrated(
        plain.widen(margin), float(np.mean(np.array(worst) <= margin)), float(readings.mean() / day_readings)
    )


def middle(low: Floats, high: Floats) -> Floats:
    """Return the middle of ranges, of any shape; the finite end if one is infinite, 0 if both are."""
    lower = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0)).astype(np.float64)
    return (lower + np.where(np.isfinite(high), high, lower)) / 2


def satisfaction(excess: Floats) -> dict[str, float]:
    """Return rho_point, rho_window, rho_trace: satisfied shares of readings, pairs and traces (§3.9).

    Args:
        excess: Distances by `Ranges.excess`, N × P × D.
    """
    is_satisfied = np.max(excess, axis=2) <= 0
    pairs = is_satisfied[:, : is_satisfied.shape[1] // PAIR * PAIR].reshape(len(is_satisfied), -1, PAIR)
    return {
        "rho_point": float(is_satisfied.mean()),
        "rho_window": float(pairs.all(axis=2).mean()) if pairs.size else float(is_satisfied.mean()),
        "rho_trace": float(is_satisfied.all(axis=1).mean()),
    }
