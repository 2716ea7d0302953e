"""A sensor's property as ranges by the clock (template 1, algorithms.md §3.2-3.3), and what obeying it means for forecasts.

`low` and `high` are tables over the W rows of a week, W × D, in units of the sensor's own scaler. A row is an hour of a day,
Monday midnight first, or a step where steps are longer than an hour.
"""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from common.arrays import Arrays
from common.tasks.traffic.vocabulary import DAY, HOUR

Floats = NDArray[np.float64]

TWO_HOURS, WORKING_DAYS, TWO_WEEKS = 2 * HOUR, 5, 14
PAIR = 2
"""Readings of one window in `rho_window`."""
POOLED = "property.low", "property.high"
"""Among a model's untrained inputs: bounds of the properties of G groups of members, G × W × D each, for newcomers."""


@dataclass(frozen=True)
class Ranges:
    """⋀_w □_[w,w] (low_w ≤ x ≤ high_w)."""

    low: Floats
    high: Floats

    @property
    def width(self) -> float:
        """Mean of high − low, in standard deviations; NaN where there is none."""
        return float(np.mean(self.high - self.low))

    def widened(self, margin: float) -> Self:
        """With that much more room on both sides."""
        return replace(self, low=self.low - margin, high=self.high + margin)

    def weaker(self, low: Floats, high: Floats) -> Self:
        """The tightest such property that allows what either of both does."""
        return replace(self, low=np.minimum(self.low, low), high=np.maximum(self.high, high))

    def bounded(self, traces: Floats) -> Floats:
        """What the bounds are of: here the readings themselves, … × D."""
        return traces

    def excess(self, traces: Floats, rows: NDArray[np.int64]) -> Floats:
        """How far each reading lies from the closest trace that obeys, 0 where it obeys; traces … × D at `rows` of the week."""
        return np.maximum(np.maximum(self.low[rows] - traces, traces - self.high[rows]), 0)

    def corrected(self, traces: Floats, rows: NDArray[np.int64]) -> Floats:
        """The closest traces that obey, in L1 and in L2: the teacher's forecasts (§3.4)."""
        return np.clip(traces, self.low[rows], self.high[rows])

    def limits(self, traces: Floats, rows: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Lower and upper bounds of each reading by itself, … × D; NaN where it has none."""
        return self.low[rows], self.high[rows]

    def arrays(self) -> Arrays:
        """As they travel."""
        return {"low": self.low.astype(np.float32), "high": self.high.astype(np.float32)}


class Calibrated(NamedTuple):
    """Ranges, and on how much of the past they held.

    Args:
        ranges: Widened.
        held: Share of the judged days that they held on, each without its own week; NaN where none was judged.
        seen: Share of the readings of those days that there were: 1 where whole days were judged; NaN where none was.
    """

    ranges: Ranges
    held: float
    seen: float


def rows_a_week(step: int) -> int:
    """W, for steps of that many seconds."""
    return 7 * DAY // max(step, HOUR)


def groups_of(kind: Literal["hourly", "paper"], week: int) -> NDArray[np.int64]:
    """Which of the rows, or readings, of a week share a range: an hour of working days or of weekends, or two of any day."""
    seconds = np.arange(week) * (7 * DAY // week)
    if kind == "paper":
        return np.asarray((seconds % DAY) // TWO_HOURS)
    return np.asarray((seconds // DAY >= WORKING_DAYS) * (DAY // HOUR) + (seconds % DAY) // HOUR)


def infer(values: Floats, rows: NDArray[np.int64], groups: NDArray[np.int64]) -> Ranges:
    """The tightest ranges that hold on all of `values`, T × D; a group never seen gets the range of everything.

    Raises:
        ValueError: There is no value.
    """
    if not len(values):
        raise ValueError("no reading to infer a property from")
    count, members = int(groups.max()) + 1, groups[rows]
    low = np.full((count, values.shape[1]), np.inf)
    high = np.full((count, values.shape[1]), -np.inf)
    np.minimum.at(low, members, values)
    np.maximum.at(high, members, values)
    low, high = np.where(low > high, values.min(0), low), np.where(low > high, values.max(0), high)
    return Ranges(low[groups], high[groups])


def calibrated(
    values: Floats,
    rows: NDArray[np.int64],
    days: NDArray[np.int64],
    groups: NDArray[np.int64],
    coverage: float,
    whole: int,
) -> Calibrated:
    """Ranges widened by one margin until `coverage` of the past days obey, each judged without its own week.

    Whole days are judged where there are two weeks of them. A day that lacks readings breaks ranges less often, so where all
    days have to be judged the margin is too small, and `seen` says by how much they fell short. Less than two weeks of
    readings cannot be judged: plain ranges.

    Args:
        values: Readings, T × D.
        rows: Which row of the week each is of, T.
        days: Which day each belongs to, T; seven consecutive numbers, from a multiple of seven, are a week.
        groups: As in `infer`.
        coverage: Share of days.
        whole: Readings of a whole day.
    """
    plain = infer(values, rows, groups)
    if len(values) < TWO_WEEKS * whole:  # two halves of weeks say nothing of each other, one may hold no weekend
        return Calibrated(plain, float("nan"), float("nan"))
    judged, readings = np.unique(days, return_counts=True)
    if (readings == whole).sum() >= TWO_WEEKS:
        judged, readings = judged[readings == whole], readings[readings == whole]
    worst: list[float] = []
    for week in np.unique(judged // 7):
        inside = days // 7 == week
        others = infer(values[~inside], rows[~inside], groups)
        excess = others.excess(values[inside], rows[inside]).max(axis=1)
        worst += [float(excess[days[inside] == day].max()) for day in judged[judged // 7 == week]]
    rank = min(len(worst), int(np.ceil(coverage * (len(worst) + 1))))
    margin = float(np.sort(worst)[rank - 1])
    return Calibrated(plain.widened(margin), float(np.mean(np.array(worst) <= margin)), float(readings.mean() / whole))


def middle(low: Floats, high: Floats) -> Floats:
    """Middle of ranges, of any shape; the other end where one is open, 0 where both are."""
    lower = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0)).astype(np.float64)
    return (lower + np.where(np.isfinite(high), high, lower)) / 2


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
