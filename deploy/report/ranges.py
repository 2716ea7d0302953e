"""A sensor's property by the clock: as formulas, and in words, in the data's own units."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from client.forecast import held_later
from client.tasks.traffic_sensor import Sensor
from common.errors import DataError
from common.logic.formula import Always, Formula, Variable
from common.tasks.traffic import Measures, TrafficOptions
from common.tasks.traffic_ranges import DAY, WORKING_DAYS

Floats = NDArray[np.float64]

NEAR = 0.05
"""Share of a variable's whole span by which neighbouring ranges may differ to be told as one."""

KINDS = (("on working days", 0), ("at weekends", WORKING_DAYS))
"""In words, and the first such day of a week."""


@dataclass(frozen=True)
class ClockRange:
    """A range that holds at some clock times of some days, rounded so that it says no more than was inferred.

    Args:
        days: In words.
        first: Reading after midnight that it begins with.
        last: The last one, included.
        step: Minutes between readings.
        variable: Name.
        low: Lower bound.
        high: Upper bound.
        digits: Digits after the point that are worth telling.
        positive: Whether the variable never read less than nothing, so that a lower bound of 0 or less says nothing.
    """

    days: str
    first: int
    last: int
    step: int
    variable: str
    low: float
    high: float
    digits: int
    positive: bool

    @property
    def formula(self) -> Formula:
        """Over a trace that begins at midnight."""
        x = Variable(self.variable)
        return Always(self.first, self.last, (x <= self.high) & (x >= self.low))

    @property
    def clock(self) -> tuple[str, str]:
        """From, to: `08:00`, `10:00`."""
        return _clock(self.first * self.step), _clock((self.last + 1) * self.step)

    @property
    def words(self) -> str:
        """A sentence without its full stop."""
        start, end = self.clock
        when = self.days if (start, end) == ("00:00", "24:00") else f"{self.days} between {start} and {end}"
        return f"{when} the {self.variable} {self._stays()}"

    def _stays(self) -> str:
        low, high = number(self.low, self.digits), number(self.high, self.digits)
        if self.low == self.high:
            return f"stays at {low}"
        return f"does not exceed {high}" if self.positive and self.low <= 0 else f"stays within {low} and {high}"


def as_lines(sensor: Sensor, measures: Measures, options: TrafficOptions) -> list[str]:
    """The property as a person reads it: by the clock, and how many days it holds on; raises as `by_clock` does."""
    ranges, name = by_clock(sensor, measures.variables), sensor.series.name
    lines = [f"{name}: what its training part obeys ({options.property} ranges, {measures.step} minutes a step)"]
    width = max(len(str(r.formula)) for r in ranges)
    for title, rows in groupby(ranges, lambda r: f"{r.days}, {r.variable}"):
        lines += ["", title, *(f"  {'–'.join(r.clock)}  {r.formula!s:{width}}  {r.words}" for r in rows)]
    return [*lines, "", *held(sensor, options)]


def as_json(sensor: Sensor, measures: Measures, options: TrafficOptions) -> dict[str, Any]:
    """The same for programs; shares that were not judged are null."""
    later, days = held_later(sensor, options)
    ranges = [
        {"days": r.days, "from": r.clock[0], "to": r.clock[1], "variable": r.variable, "low": r.low, "high": r.high}
        | {"formula": str(r.formula), "words": r.words}
        for r in by_clock(sensor, measures.variables)
    ]
    return {
        "site": sensor.series.name,
        "property": options.property,
        "held": None if math.isnan(sensor.held) else sensor.held,
        "held_later": None if math.isnan(later) else later,
        "later_days": days,
        "ranges": ranges,
    }


def held(sensor: Sensor, options: TrafficOptions) -> list[str]:
    """On how many days the property holds, as sentences without their full stops."""
    later, days = held_later(sensor, options)
    if not math.isnan(sensor.held):
        lines = [f"held on {_percent(sensor.held)} of past days, each judged without its own week"]
    elif options.property == "calibrated":
        lines = ["not calibrated: less than two weeks of training; later days may well break it"]
    else:
        lines = ["all past days obey, since they made it; only tasks.traffic.property=calibrated judges how many will"]
    return lines + ([f"of the {days} whole days after its training part, {_percent(later)} obeyed"] if days else [])


def by_clock(sensor: Sensor, variables: tuple[str, ...]) -> list[ClockRange]:
    """The sensor's property, variable by variable.

    Raises:
        DataError: Nothing was observed that one could be inferred from.
    """
    low, high = (sensor.scaler.unscale(bound) for bound in (sensor.ranges.low, sensor.ranges.high))
    if not np.isfinite(high - low).all():
        raise DataError(f"'{sensor.series.name}' has no reading in its training part; give more of its past")
    found: list[ClockRange] = []
    for d, variable in enumerate(variables):
        positive = bool((sensor.series.values[:, d] >= 0).all())
        found += _of_variable(low[:, d], high[:, d], variable, positive)
    return found


def number(value: float, digits: int) -> str:
    """`1,904`; never a zero with a sign."""
    return f"{round(value, digits) + 0.0:,.{digits}f}"


def digits_for(span: float) -> int:
    """Digits after the point that tell a thousandth of the span."""
    return max(0, 2 - math.floor(math.log10(span))) if span > 0 else 2


def _of_variable(low: Floats, high: Floats, variable: str, positive: bool) -> Iterator[ClockRange]:
    """Over the W readings of a week."""
    day, span = len(low) // 7, float(high.max() - low.min())
    digits = digits_for(span)
    bounds = np.stack([np.floor(low * 10**digits), np.ceil(high * 10**digits)]) / 10**digits
    tables = [(days, bounds[:, first * day : (first + 1) * day]) for days, first in KINDS]
    if np.array_equal(tables[0][1], tables[1][1]):
        tables = [("every day", tables[0][1])]
    for days, table in tables:
        for first, last in _alike(table, NEAR * span):
            a, b = float(table[0, first : last + 1].min()), float(table[1, first : last + 1].max())
            yield ClockRange(days, first, last, DAY // day, variable, a, b, digits, positive)


def _alike(table: Floats, tolerance: float) -> Iterator[tuple[int, int]]:
    """Runs, first and last, in which no bound differs from another by more than the tolerance; table 2 × readings."""
    first = 0
    for k in range(1, table.shape[1] + 1):
        whole = table[:, first : k + 1]
        if k == table.shape[1] or np.ptp(whole, axis=1).max() > tolerance:
            yield first, k - 1
            first = k


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
