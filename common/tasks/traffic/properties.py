"""Properties of a sensor by hour: ranges and differences; template parameters (§3.2-3.4, §3.7).

`low` and `high` are tables over the W rows of a week, W × D, in units of the sensor's scaler. A row is an hour, from Monday
midnight, or a step if steps are longer than an hour.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np

from common.arrays import Arrays, Floats, Ints
from common.errors import WireError
from common.logic.formula import STRICT
from common.tasks.traffic.vocabulary import DAY, HOUR

TWO_HOURS, WORKING_DAYS = 2 * HOUR, 5
PAIR = 2
"""Number of readings of a window in `rho_window`."""
POOLED = "property.low", "property.high"
"""Names of the untrained inputs that hold pooled properties of G groups, G × W × D each.

They serve cold-start clients.
"""


@dataclass(frozen=True)
class Ranges:
    """Range property ⋀_w □_[w,w] (low_w ≤ x ≤ high_w).

    Calibrated ranges move with a margin in spreads of their row (`client.tasks.traffic.calibration`).

    Args:
        low: Lower bounds, W × D.
        high: Upper bounds, W × D.
        spread: Spread of each row, W × D; None if the bounds do not move.
        least: Smallest lower bound of each variable, 1 × D; None without one.
        unclipped: Lower bounds before they were raised to `least`, W × D; None if they are those of `low`.
    """

    low: Floats
    high: Floats
    spread: Floats | None = field(default=None, kw_only=True)
    least: Floats | None = field(default=None, kw_only=True)
    unclipped: Floats | None = field(default=None, kw_only=True)

    @property
    def width(self) -> float:
        """Mean of high − low, in standard deviations; NaN for one-sided bounds."""
        return float(np.mean(self.high - self.low))

    def above(self, least: Floats) -> Self:
        """Return the property with lower bounds of at least `least`, 1 × D."""
        return replace(self, low=np.maximum(self.low, least), least=least, unclipped=self.low)

    def weaken(self, low: Floats, high: Floats) -> Self:
        """Return the tightest property that allows all traces of this one and of other bounds."""
        return replace(self, low=np.minimum(self.low, low), high=np.maximum(self.high, high), unclipped=None)

    def bounded_values(self, traces: Floats) -> Floats:
        """Return the values that the bounds restrict: the readings, … × D."""
        return traces

    def limits(self, rows: Ints, margin: Floats | float = 0.0) -> tuple[Floats, Floats]:
        """Return lower and upper bounds of the bounded values of readings, … × D.

        Args:
            rows: Row of the week of each reading, ….
            margin: Distance by which both bounds move outwards, in spreads, of the shape of `rows` or one that fits it.
        """
        if self.spread is None:
            return self.low[rows], self.high[rows]
        low, more = (
            self.low if self.unclipped is None else self.unclipped,
            np.asarray(margin)[..., None] * self.spread[rows],
        )
        low, high = low[rows] - more, self.high[rows] + more
        return (low if self.least is None else np.maximum(low, self.least)), high

    def excess(self, traces: Floats, rows: Ints, margin: Floats | float = 0.0) -> Floats:
        """Return the distance of each reading to the closest satisfying trace, … × D; 0 if it is satisfied.

        Args:
            traces: Readings, … × D.
            rows: Row of the week of each reading, ….
            margin: Distance by which the bounds move outwards, as in `limits`.
        """
        low, high = self.limits(rows, margin)
        return np.maximum(np.maximum(low - traces, traces - high), 0)

    def project(self, traces: Floats, rows: Ints, margin: Floats | float = 0.0) -> Floats:
        """Return the closest satisfying traces in L1 and L2, the teacher's forecasts (§3.4)."""
        return np.clip(traces, *self.limits(rows, margin))

    def reading_limits(self, traces: Floats, rows: Ints, margin: Floats | float = 0.0) -> tuple[Floats, Floats]:
        """Return lower and upper bounds of each single reading, … × D; NaN without bounds."""
        return self.limits(rows, margin)

    def arrays(self) -> Arrays:
        """Return the arrays of a message."""
        return {"low": self.low.astype(np.float32), "high": self.high.astype(np.float32)}


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


@dataclass(frozen=True)
class Differences(Ranges):
    """Difference property ⋀_w □_[w,w] (x₁ − x₂ > low_w).

    Each variable is in its own standard deviations; `low` is W × 1 and `high` infinite.

    Args:
        pair: Indices of x₁ and x₂ among the variables.
    """

    pair: tuple[int, int] = (0, 1)

    @property
    def width(self) -> float:
        """NaN, since a difference has a lower bound only."""
        return float("nan")

    def bounded_values(self, traces: Floats) -> Floats:
        """Compute x₁ − x₂, … × 1."""
        first, second = self.pair
        return traces[..., first, None] - traces[..., second, None]

    def excess(self, traces: Floats, rows: Ints, margin: Floats | float = 0.0) -> Floats:
        """Return the distances to the closest satisfying trace, … × D.

        Each of the two variables has half of the missing difference. The total does not depend on this split.
        """
        return np.abs(self._moves(traces, rows, margin))

    def project(self, traces: Floats, rows: Ints, margin: Floats | float = 0.0) -> Floats:
        """Return the closest satisfying traces in L1 and L2.

        Each of the two variables moves by half of the missing difference.
        """
        return traces + self._moves(traces, rows, margin)

    def reading_limits(self, traces: Floats, rows: Ints, margin: Floats | float = 0.0) -> tuple[Floats, Floats]:
        """Return NaN bounds, since single variables have none."""
        nan = np.full_like(traces, np.nan)
        return nan, nan

    def arrays(self) -> Arrays:
        """Return the arrays of a message; both names hold the lower bound."""
        low = self.low.astype(np.float32)
        return {"low": low, "high": low}

    def _moves(self, traces: Floats, rows: Ints, margin: Floats | float) -> Floats:
        (low, _), gap = self.limits(rows, margin), self.bounded_values(traces)
        missing = np.where(gap > low, 0.0, low + STRICT - gap)[..., 0] / 2
        moves = np.zeros_like(traces)
        moves[..., self.pair[0]], moves[..., self.pair[1]] = missing, -missing
        return moves


def to_differences(ranges: Ranges, pair: tuple[int, int]) -> Differences:
    """Convert ranges of x₁ − x₂ to template 4: their lower side as a strict bound."""
    return Differences(ranges.low - STRICT, np.full_like(ranges.low, np.inf), pair, spread=ranges.spread)


WEAKER_UP, WEAKER_DOWN = ("upper", "held", "met", "trigger"), ("lower", "bound", "response")
"""Parameters that weaken a formula as they grow, and as they fall; a row for each variable, n × W."""

STRUCTURE = TEMPLATE, WINDOWS, VARIABLES = "template", "windows", "variables"
"""Names of the template's number, of its windows, W × 2, and of indices of variables."""

PARAMETERS: Mapping[int, frozenset[str]] = {
    1: frozenset({"upper", "lower"}),
    2: frozenset({"upper", "lower"}),
    3: frozenset({"held", "met"}),
    4: frozenset({"bound"}),
    5: frozenset({"trigger", "response"}),
    6: frozenset({"trigger", "response"}),
    7: frozenset({"bound"}),
}
"""Template of Table 1 -> its parameters. The windows of 5 and 6 are the trigger's span and the delay."""

NAMES = (*STRUCTURE, *WEAKER_UP, *WEAKER_DOWN)
"""Names of all arrays of a property of a template."""

PAIRED = (4, 6)
"""Templates of two variables."""


def check_parameters(arrays: Arrays, horizon: int, *, with_structure: bool) -> None:
    """Check a property of a template; without noise it names its structure.

    Raises:
        WireError: Names, shapes or numbers are not those of such a property for forecasts of `horizon` steps.
    """
    values = {name: a for name, a in arrays.items() if name not in STRUCTURE}
    if frozenset(values) not in PARAMETERS.values() or with_structure != (arrays.keys() >= set(STRUCTURE)):
        raise WireError(f"property has unknown parameters: {', '.join(sorted(arrays))[:80]}")
    shape = next(iter(values.values())).shape
    if len(shape) != 2 or 0 in shape or any(a.shape != shape or a.dtype.kind != "f" for a in values.values()):
        raise WireError("parameters of the property are not numbers by variable and window")
    if any(np.isnan(a).any() or (name != "response" and np.isinf(a).any()) for name, a in values.items()):
        raise WireError("parameters of the property are non-finite")
    if with_structure:
        _check_structure(arrays, frozenset(values), shape, horizon)


def _check_structure(arrays: Arrays, values: frozenset[str], shape: tuple[int, ...], horizon: int) -> None:
    template, windows, variables = (arrays[name] for name in STRUCTURE)
    if any(a.dtype.kind not in "iu" for a in (template, windows, variables)) or template.shape != (1,):
        raise WireError("template, windows and variables of the property are not whole numbers")
    if PARAMETERS.get(int(template[0])) != values:
        raise WireError(f"property of template {int(template[0])} has parameters of another one")
    is_response = "trigger" in values
    if windows.shape != (2 if is_response else shape[1], 2) or shape[1] > horizon:
        raise WireError("windows of the property do not match its parameters")
    reach = windows.sum(axis=0).max() if is_response else windows.max()
    if windows.min() < 0 or (windows[:, 0] > windows[:, 1]).any() or reach >= horizon:
        raise WireError(f"windows of the property are outside the {horizon} steps of a forecast")
    rows = 1 if int(template[0]) in PAIRED else shape[0]
    if variables.shape != (2 if int(template[0]) in PAIRED else shape[0],) or variables.min() < 0 or rows != shape[0]:
        raise WireError("variables of the property do not match its parameters")


def pool_parameters(members: Sequence[Arrays]) -> Arrays:
    """Return the strongest property that no member's parameters exclude; empty without members.

    Members of another structure than the most common one are left out. For templates 1, 4 and 7 the result equals
    inference on the members' pooled data; for the others it takes the weakest of every parameter.
    """
    if not members:
        return {}
    keys = [_structure(member) for member in members]
    common = Counter(keys).most_common(1)[0][0]
    fitting = [member for member, key in zip(members, keys, strict=True) if key == common]
    pooled = {name: a for name, a in fitting[0].items() if name in STRUCTURE}
    for names, weakest in ((WEAKER_UP, np.max), (WEAKER_DOWN, np.min)):
        pooled |= {n: weakest([member[n] for member in fitting], axis=0) for n in names if n in fitting[0]}
    return pooled


def is_alike(one: Arrays, other: Arrays) -> bool:
    """Return True if two properties have one structure and parameters of one shape."""
    return _structure(one) == _structure(other)


def _structure(arrays: Arrays) -> tuple[tuple[str, object], ...]:
    return tuple((n, tuple(a.ravel().tolist()) if n in STRUCTURE else a.shape) for n, a in sorted(arrays.items()))


def templates_of(memory: Mapping[str, Arrays], clients: Iterable[str]) -> dict[str, Arrays]:
    """Return client -> its property, from name -> client -> array; clients without one are left out."""
    found = {client: {n: memory[n][client] for n in NAMES if client in memory.get(n, {})} for client in clients}
    return {client: arrays for client, arrays in found.items() if arrays}
