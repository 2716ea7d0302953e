"""A sensor's ranges and differences by time of the day, as formulas and text in the data's units."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from client.tasks.traffic.prepare import Sensor
from common.errors import DataError
from common.logic.formula import Always, Atom, Formula, Variable
from common.tasks.traffic.differences import Differences
from deploy.tasks.traffic.clock import Floats, Stretch, digits_for, number, stretches

MERGE_SHARE = 0.05
"""Share of a variable's span by which neighbouring bounds may differ to be merged."""


@dataclass(frozen=True)
class Clause(ABC):
    """Property of a variable in a stretch of the day.

    Bounds are rounded outwards: the statement is never stronger than the inferred one.

    Args:
        stretch: Stretch of the day.
        variable: Name of the variable, or both names.
        low: Lower bound.
        high: Upper bound; infinite if there is none.
        digits: Number of significant decimals.
    """

    stretch: Stretch
    variable: str
    low: float
    high: float
    digits: int

    @property
    @abstractmethod
    def formula(self) -> Formula:
        """Formula over a trace that begins at midnight."""

    @property
    @abstractmethod
    def words(self) -> str:
        """Sentence without its full stop."""


@dataclass(frozen=True)
class ClockRange(Clause):
    """Range of a variable (template 1).

    Args:
        positive: True if no reading is negative; a lower bound of 0 or less is then left out.
    """

    positive: bool

    @property
    def formula(self) -> Formula:
        """Formula □ (x ≤ high ∧ x ≥ low)."""
        x = Variable(self.variable)
        return Always(self.stretch.first, self.stretch.last, (x <= self.high) & (x >= self.low))

    @property
    def words(self) -> str:
        """Sentence `… the volume stays within 5 and 10`."""
        low, high = number(self.low, self.digits), number(self.high, self.digits)
        stays = f"stays at {low}" if self.low == self.high else f"stays within {low} and {high}"
        open_below = self.positive and self.low <= 0 and self.low != self.high
        return f"{self.stretch.when} the {self.variable} {f'does not exceed {high}' if open_below else stays}"


@dataclass(frozen=True)
class ClockDifference(Clause):
    """Difference of two variables (template 4): x₁ − c·x₂ > low, c the ratio of their standard deviations.

    Args:
        names: Names of x₁ and x₂.
        ratio: Ratio c.
    """

    names: tuple[str, str]
    ratio: float

    @property
    def formula(self) -> Formula:
        """Formula □ (x₁ − c·x₂ > low)."""
        difference = Variable(self.names[0]) - self.ratio * Variable(self.names[1])
        return Always(self.stretch.first, self.stretch.last, Atom(difference, ">", self.low))

    @property
    def words(self) -> str:
        """Sentence `… the cars stays above 3.2 times the trucks less 5`."""
        than = f"{self.ratio:g} times the {self.names[1]}"
        more = "plus" if self.low > 0 else "less"
        return f"{self.stretch.when} the {self.names[0]} stays above {than} {more} {number(abs(self.low), self.digits)}"


def by_clock(sensor: Sensor, variables: tuple[str, ...]) -> list[Clause]:
    """Return the sensor's property, variable by variable.

    Raises:
        DataError: No reading was observed from which a property could be inferred.
    """
    if not sensor.usable.any():
        raise DataError(f"'{sensor.series.name}' {_describe_gap(sensor, variables)}, or give more of its past")
    if isinstance(sensor.ranges, Differences):
        return list(_differences(sensor, sensor.ranges, variables))
    low, high = (sensor.scaler.unscale(bound) for bound in (sensor.ranges.low, sensor.ranges.high))
    clauses: list[Clause] = []
    for d, variable in enumerate(variables):
        positive = bool((sensor.series.values[:, d] >= 0).all())
        clauses += _ranges(np.stack([low[:, d], high[:, d]]), variable, positive, sensor.step)
    return clauses


def _describe_gap(sensor: Sensor, variables: tuple[str, ...]) -> str:
    """Return the reason why a sensor without usable readings has none, and a remedy."""
    past = sensor.observed[: sensor.past]
    missing = [f"'{name}'" for d, name in enumerate(variables) if not past[:, d].any()]
    if len(missing) == len(variables):
        return "has no reading in its training part; leave it out"
    if missing:
        return f"has no reading of {' and '.join(missing)} in its training part; leave that column out"
    return "has no moment in its training part at which all its variables were read; leave a column out"


def _ranges(table: Floats, variable: str, positive: bool, step: int) -> Iterator[Clause]:
    """Iterate over the ranges of a variable, from its bounds by the row of the week, 2 × W."""
    span = float(table.max() - table.min())
    digits = digits_for(span)
    bounds = np.stack([np.floor(table[0] * 10**digits), np.ceil(table[1] * 10**digits)]) / 10**digits
    for stretch, (low, high) in stretches(bounds, step, MERGE_SHARE * span):
        yield ClockRange(stretch, variable, float(low.min()), float(high.max()), digits, positive)


def _differences(sensor: Sensor, inferred: Differences, variables: tuple[str, ...]) -> Iterator[Clause]:
    """Iterate over the differences in the units of x₁; the bound is lowered by the rounding error of c."""
    (first, second), scaler = inferred.pair, sensor.scaler
    exact = scaler.std[first] / scaler.std[second]
    ratio = float(f"{exact:.3g}")
    bound = inferred.low[:, 0] * scaler.std[first] + scaler.mean[first] - exact * scaler.mean[second]
    bound = bound - abs(ratio - exact) * float(np.abs(sensor.series.values[:, second]).max())
    digits = digits_for(float(np.ptp(sensor.series.values[:, first])))
    rounded = np.floor(bound * 10**digits) / 10**digits
    names = variables[first], variables[second]
    for stretch, (low,) in stretches(rounded[None], sensor.step, MERGE_SHARE * float(np.ptp(bound))):
        yield ClockDifference(stretch, " over ".join(names), float(low.min()), np.inf, digits, names, ratio)
