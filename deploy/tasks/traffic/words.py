"""Numbers, clock times, formulas and pooled properties in words."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from client.tasks.traffic.template_property import TemplateProperty
from common.arrays import Array, Arrays, Floats
from common.logic.formula import (
    Always,
    And,
    Atom,
    Eventually,
    Formula,
    Implies,
    Not,
    Or,
    Until,
    number_text,
    with_digits,
)
from common.tasks.traffic.properties import TEMPLATE, VARIABLES, WORKING_DAYS, is_alike, pool_parameters, templates_of
from common.tasks.traffic.vocabulary import DAY, HOUR
from server.aggregation.clusters import pool_ranges
from server.record.folder import Checkpoint

KINDS = (("on working days", 0), ("at weekends", WORKING_DAYS))
"""Text of a kind of days, and the first such day of the week."""


@dataclass(frozen=True)
class Stretch:
    """Part of the days of one kind.

    Args:
        days: Text of the kind of days.
        first: Index of its first reading after midnight.
        last: Index of its last reading.
        step: Seconds between readings.
    """

    days: str
    first: int
    last: int
    step: int

    @property
    def clock(self) -> tuple[str, str]:
        """Start and end: `08:00`, `10:00`."""
        return clock(self.first * self.step), clock((self.last + 1) * self.step)

    @property
    def when(self) -> str:
        """Text: `on working days between 08:00 and 10:00`."""
        start, end = self.clock
        return self.days if (start, end) == ("00:00", "24:00") else f"{self.days} between {start} and {end}"


def stretches(table: Floats, step: int, tolerance: float) -> Iterator[tuple[Stretch, Floats]]:
    """Iterate over stretches with nearly constant bounds, each with its bounds, K × rows.

    Within a stretch no bound changes by more than the tolerance.

    Args:
        table: Bounds by the row of the week, K × W.
        step: Seconds between readings; a row lasts at least an hour.
        tolerance: Maximum change, in the units of the bounds.
    """
    day, row = table.shape[1] // 7, max(step, HOUR)
    halves = [(days, table[:, first * day : (first + 1) * day]) for days, first in KINDS]
    if np.array_equal(halves[0][1], halves[1][1]):
        halves = [("every day", halves[0][1])]
    for days, part in halves:
        for first, last in _constant_runs(part, tolerance):
            yield Stretch(days, first * row // step, (last + 1) * row // step - 1, step), part[:, first : last + 1]


def number(value: float, digits: int) -> str:
    """Return a number as text, `1,904`, without negative zero; empty for NaN."""
    return "" if math.isnan(value) else f"{round(value, digits) + 0.0:,.{digits}f}"


def digits_for(span: float) -> int:
    """Return the number of decimals that resolve a thousandth of the span."""
    return max(0, 2 - math.floor(math.log10(span))) if span > 0 else 2


def percent(share: float) -> str:
    """Return a share as text, `91 %`."""
    return f"{100 * share:.0f} %"


def _constant_runs(table: Floats, tolerance: float) -> Iterator[tuple[int, int]]:
    """Iterate over first and last row of stretches whose bounds change by at most the tolerance."""
    first = 0
    for k in range(1, table.shape[1] + 1):
        rows = table[:, first : k + 1]
        if k == table.shape[1] or np.ptp(rows, axis=1).max() > tolerance:
            yield first, k - 1
            first = k


def clock(seconds: int) -> str:
    """Return the time of the day that many seconds after midnight: `08:00`."""
    fields = [seconds // HOUR, seconds % HOUR // 60, *([seconds % 60] if seconds % 60 else [])]
    return ":".join(f"{part:02d}" for part in fields)


RELATIONS = {"<=": "is at most", ">=": "is at least", "<": "is below", ">": "is above"}


def describe_formula(phi: Formula, step: int, *, at_midnight: bool) -> str:
    """Return φ as a clause of a sentence.

    Args:
        phi: Formula.
        step: Seconds between readings.
        at_midnight: True if reading 0 is that at midnight; times are then of the clock.
    """
    return _words(phi, step if at_midnight and DAY % step == 0 else 0, top=True)


def _words(phi: Formula, step: int, *, top: bool) -> str:
    inner = partial(_words, step=step)
    match phi:
        case Atom(expression, relation, bound):
            moment = " at midnight" if step else " at the first reading"
            return f"the {expression} {RELATIONS[relation]} {number_text(bound)}{moment if top else ''}"
        case Not(part):
            return f"it is not true that {inner(part, top=top)}"
        case And(clauses):
            return (", and " if top else " and ").join(inner(part, top=top) for part in clauses)
        case Or(clauses):
            return "either " + " or ".join(inner(part, top=top) for part in clauses)
        case Implies(left, right):
            return f"if {inner(left, top=top)}, then {inner(right, top=top)}"
        case Always(a, b, part):
            return f"{_window('every', a, b, step, top=top)} {inner(part, top=False)}"
        case Eventually(a, b, part):
            return f"{_window('some', a, b, step, top=top)} {inner(part, top=False)}"
        case Until(a, b, left, right):
            when = _window("some", a, b, step, top=top)
            return f"{inner(left, top=False)} up to {when.removeprefix('at ')} where {inner(right, top=False)}"


def _window(quantity: str, a: int, b: int, step: int, *, top: bool) -> str:
    """Return `at every reading between 00:00 and 06:00`, or the window in steps."""
    if top and step:
        start, end = Stretch("", a, b, step).clock
        return f"at the reading of {start}" if a == b else f"at {quantity} reading between {start} and {end}"
    if a == b:
        return f"at reading {a}" if top else f"{a} readings later"
    return f"at {quantity} reading from {a} to {b}" + ("" if top else " later")


DIGITS = 2
"""Significant digits of a cluster's formula."""

UNIT = "standard deviations from each sensor's mean"


def describe_clusters(checkpoint: Checkpoint) -> dict[str, str]:
    """Return cluster -> highest and lowest hours of its property; empty without clusters or properties."""
    if templates := templates_of(checkpoint.groups, sorted(checkpoint.groups.get("cluster", {}))):
        return _describe_templates({c: int(j) for c, j in checkpoint.groups["cluster"].items()}, templates)
    clusters, low, high = (checkpoint.groups.get(name, {}) for name in ("cluster", "low", "high"))
    members: dict[int, list[str]] = {}
    for client in sorted(clusters.keys() & low.keys() & high.keys()):
        members.setdefault(int(clusters[client]), []).append(client)
    return {str(j): text for j, names in members.items() if (text := _describe(names, low, high))}


def _describe_templates(clusters: Mapping[str, int], templates: Mapping[str, Arrays]) -> dict[str, str]:
    """Return cluster -> the template of most members, its pooled formula, and the number of other members."""
    words = {}
    for j in sorted({clusters[client] for client in templates}):
        members = [arrays for client, arrays in templates.items() if clusters[client] == j]
        pooled = pool_parameters(members)
        if TEMPLATE not in pooled:  # noise leaves the structure out
            continue
        variables = [f"x{k + 1}" for k in range(int(pooled[VARIABLES].max()) + 1)]
        phi, alike = TemplateProperty(pooled).formula(variables), sum(is_alike(one, pooled) for one in members)
        shown = "no bound" if phi is None else str(with_digits(phi, DIGITS))
        others = f"; {len(members) - alike} members have other templates" if alike < len(members) else ""
        words[str(j)] = f"template {int(pooled[TEMPLATE][0])}: {shown}, in {UNIT}{others}"
    return words


def _describe(names: list[str], low: Arrays, high: Arrays) -> str:
    """Return the property of the first variable in words; empty if it has no range by the hour."""
    pooled: Mapping[str, Array] = pool_ranges([low[name] for name in names], [high[name] for name in names])
    bounds = np.stack([pooled["low"], pooled["high"]])
    if bounds.ndim != 3 or bounds.shape[1] != 7 * DAY // HOUR or not np.isfinite(bounds[..., 0]).all():
        return ""
    return f"{'; '.join(_extremes(bounds[..., 0]))}, in {UNIT}"


def _extremes(bounds: Floats) -> Iterator[str]:
    """Yield a clause for each kind of days, from bounds by hour of the week, 2 × 168."""
    day = DAY // HOUR
    for days, first in KINDS:
        hours = bounds[:, first * day : (first + 1) * day]
        middle = hours.mean(axis=0)
        top, least = int(middle.argmax()), int(middle.argmin())
        high, low = (f"{hours[0, hour]:.1f} to {hours[1, hour]:.1f}".replace("-", "−") for hour in (top, least))
        yield f"{days} highest at {top:02d}:00 ({high}) and lowest at {least:02d}:00 ({low})"
