"""Property of a sensor as text and as JSON, with the share of days that satisfy it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch

from client.tasks.traffic.calibration import fewest_windows
from client.tasks.traffic.formula_property import Stated, past_days
from client.tasks.traffic.formula_targets import JudgedWindows, judge_windows
from client.tasks.traffic.inference import held_later
from client.tasks.traffic.sensor import Sensor
from common.arrays import Floats
from common.errors import DataError
from common.logic.formula import Always, And, Atom, Formula, Variable, with_digits
from common.logic.mining import mine
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.properties import Differences
from common.tasks.traffic.vocabulary import DAY, SensorVariables, duration
from deploy.tasks.traffic.words import Stretch, clock, describe_formula, digits_for, number, percent, stretches

MERGE_SHARE = 0.05
"""Share of a variable's span by which neighbouring bounds may differ to be merged."""


@dataclass(frozen=True)
class Clause:
    """Property of a variable in a stretch of the day.

    Bounds are rounded outwards: the statement is never stronger than the inferred one.

    Args:
        stretch: Stretch of the day.
        variable: Name of the variable, or both names.
        low: Lower bound.
        high: Upper bound; infinite if there is none.
        formula: Formula over a trace that begins at midnight.
        words: Sentence without its full stop.
    """

    stretch: Stretch
    variable: str
    low: float
    high: float
    formula: Formula
    words: str


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
    """Iterate over the ranges of a variable (template 1), □ (x ≤ high ∧ x ≥ low).

    The table has its bounds by the row of the week, 2 × W. If no reading is negative (`positive`), words leave out lower bounds
    of 0 or less.
    """
    span, x = float(table.max() - table.min()), Variable(variable)
    digits = digits_for(span)
    bounds = np.stack([np.floor(table[0] * 10**digits), np.ceil(table[1] * 10**digits)]) / 10**digits
    for stretch, (lower, upper) in stretches(bounds, step, MERGE_SHARE * span):
        low, high = float(lower.min()), float(upper.max())
        least, most = number(low, digits), number(high, digits)
        if low == high:
            stays = f"stays at {least}"
        else:
            stays = f"does not exceed {most}" if positive and low <= 0 else f"stays within {least} and {most}"
        formula = Always(stretch.first, stretch.last, (x <= high) & (x >= low))
        yield Clause(stretch, variable, low, high, formula, f"{stretch.when} the {variable} {stays}")


def _differences(sensor: Sensor, inferred: Differences, variables: tuple[str, ...]) -> Iterator[Clause]:
    """Iterate over the differences of two variables (template 4), □ (x₁ − c·x₂ > low), in the units of x₁.

    c is the ratio of their standard deviations. The bound is lowered by the rounding error of c.
    """
    (first, second), scaler = inferred.pair, sensor.scaler
    exact = scaler.std[first] / scaler.std[second]
    ratio = float(f"{exact:.3g}")
    bound = inferred.low[:, 0] * scaler.std[first] + scaler.mean[first] - exact * scaler.mean[second]
    bound = bound - abs(ratio - exact) * float(np.abs(sensor.series.values[:, second]).max())
    digits = digits_for(float(np.ptp(sensor.series.values[:, first])))
    rounded = np.floor(bound * 10**digits) / 10**digits
    names = variables[first], variables[second]
    difference = Variable(names[0]) - ratio * Variable(names[1])
    for stretch, (lower,) in stretches(rounded[None], sensor.step, MERGE_SHARE * float(np.ptp(bound))):
        low = float(lower.min())
        formula = Always(stretch.first, stretch.last, Atom(difference, ">", low))
        than = f"{ratio:g} times the {names[1]} {'plus' if low > 0 else 'less'} {number(abs(low), digits)}"
        words = f"{stretch.when} the {names[0]} stays above {than}"
        yield Clause(stretch, " over ".join(names), low, np.inf, formula, words)


MOST_MINED = 3
"""Number of the tightest properties that are listed."""

DIGITS = 4
"""Significant digits of numbers in a formula in words."""

NONE = "no property: it needs 14 complete days of readings in training"


def stated_lines(sensor: Sensor, phi: Stated) -> list[str]:
    """Return the formula, its words, and the share of past and later windows that satisfy it."""
    if phi.formula is None:
        return [f"{sensor.series.name}: {NONE}"]
    anchor = "midnight" if phi.at_midnight else "the first reading of a forecast"
    source = "formula for every sensor" if phi.written is not None else "property of its training part"
    return [
        f"{sensor.series.name}: {source} (reading 0 is {anchor}, {duration(sensor.step)} a step)",
        "",
        *_conjuncts(sensor, phi, phi.formula),
        "",
        *describe_stated(sensor, phi),
        *([] if phi.written is not None else _tightest(sensor, phi)),
    ]


def stated_json(sensor: Sensor, phi: Stated) -> dict[str, Any]:
    """Return the formula as JSON; shares without any window are null."""
    past, later = _past_and_later(sensor)
    shown = None if phi.formula is None else with_digits(phi.formula, DIGITS)
    return {
        "site": sensor.series.name,
        "formula": None if phi.formula is None else str(phi.formula),
        "words": NONE if shown is None else describe_formula(shown, sensor.step, at_midnight=phi.at_midnight),
        "anchor": "midnight" if phi.at_midnight else "forecast",
        "held": None if math.isnan(past.share) else past.share,
        "past_days": len(past.first),
        "worst_day": _moment(sensor, past) if len(past.first) else None,
        "worst_robustness": float(past.robustness.min()) if len(past.first) else None,
        "held_later": None if math.isnan(later.share) else later.share,
        "later_days": len(later.first),
    }


def _conjuncts(sensor: Sensor, phi: Stated, formula: Formula) -> list[str]:
    """Return one line for each conjunct: its text and its words."""
    shown = with_digits(formula, DIGITS)
    conjuncts = shown.members if isinstance(shown, And) else (shown,)
    width = max(len(str(part)) for part in conjuncts)
    words = (describe_formula(part, sensor.step, at_midnight=phi.at_midnight) for part in conjuncts)
    return [f"  {part!s:{width}}  {text}" for part, text in zip(conjuncts, words, strict=True)]


def _tightest(sensor: Sensor, phi: Stated) -> list[str]:
    """Return the tightest properties of any template, with their slack."""
    days = past_days(phi, sensor.values, sensor.slots, sensor.usable)
    found = mine(torch.from_numpy(days), phi.names)[:MOST_MINED]
    about = (f"  template {m.template}, windows of {m.width}: slack {m.slack:.2f} standard deviations" for m in found)
    return ["", "tightest properties of its past", *about]


def describe_stated(sensor: Sensor, phi: Stated) -> list[str]:
    """Return sentences, without full stops, on the share of windows that satisfy the formula."""
    if phi.formula is None:
        return [NONE]
    (past, later), windows = _past_and_later(sensor), "days" if phi.at_midnight else "windows"
    if not len(past.first):
        return [f"no complete {windows[:-1]} in its training part, so none was judged"]
    lines = [f"satisfied on {percent(past.share)} of {len(past.first)} complete {windows} of its training part"]
    if not past.satisfied.all():
        missing = f"{-past.robustness.min():.3g}"
        lines.append(f"worst on {_moment(sensor, past)}: {missing} beyond a bound")
    if len(later.first):
        lines.append(f"satisfied on {percent(later.share)} of {len(later.first)} complete {windows} after it")
    return lines


def describe_unjudged(sensor: Sensor, phi: Stated) -> str:
    """Return the reason why the forecast after the last reading is not corrected; empty if it is."""
    step, day = sensor.step, phi.day
    reading = (int(sensor.slots[-1]) + 1) % day
    if not phi.at_midnight or reading == 0:
        return ""
    return (
        f"not corrected: the formula judges forecasts that begin at midnight, and this one begins at {clock(reading * step)};"
        " end the data at midnight, or train with tasks.traffic.anchor=forecast"
    )


def _past_and_later(sensor: Sensor) -> tuple[JudgedWindows, JudgedWindows]:
    return judge_windows(sensor, 0, sensor.past), judge_windows(sensor, sensor.past, len(sensor.values))


def _moment(sensor: Sensor, windows: JudgedWindows) -> str:
    time = sensor.series.times(sensor.step)[windows.first[windows.worst]].astype("datetime64[m]")
    return str(time).replace("T", " ").removesuffix(" 00:00")


def as_lines(sensor: Sensor, measures: SensorVariables, options: TrafficOptions) -> list[str]:
    """Return the property as text: formulas by time of the day, and the share of days that satisfy it.

    Raises:
        DataError: No reading was observed from which a property could be inferred.
    """
    if sensor.stated:
        return stated_lines(sensor, sensor.stated)
    clauses, name = by_clock(sensor, measures.variables), sensor.series.name
    kind = "a difference" if options.property == "difference" else f"{options.property} ranges"
    source = "similar clients and of its own training part" if sensor.pooled else "its training part"
    lines = [f"{name}: property of {source} ({kind}, {duration(measures.step_seconds)} a step)"]
    width = max(len(str(c.formula)) for c in clauses)
    for title, rows in groupby(clauses, lambda c: f"{c.stretch.days}, {c.variable}"):
        lines += ["", title, *(f"  {'–'.join(c.stretch.clock)}  {c.formula!s:{width}}  {c.words}" for c in rows)]
    return [*lines, "", *describe_satisfaction(sensor, options)]


def as_json(sensor: Sensor, measures: SensorVariables, options: TrafficOptions) -> dict[str, Any]:
    """Return the property as JSON; shares that were not tested, and missing bounds, are null.

    Raises:
        DataError: No reading was observed from which a property could be inferred.
    """
    if sensor.stated:
        return {"property": options.property, **stated_json(sensor, sensor.stated)}
    (later, days), tested = held_later(sensor), sensor.calibrated
    ranges: list[dict[str, Any]] = []
    for c in by_clock(sensor, measures.variables):
        when = {"days": c.stretch.days, "from": c.stretch.clock[0], "to": c.stretch.clock[1], "variable": c.variable}
        bounds = {"low": c.low, "high": None if math.isinf(c.high) else c.high}
        ranges.append({**when, **bounds, "formula": str(c.formula), "words": c.words})
    return {
        "site": sensor.series.name,
        "property": options.property,
        "pooled": sensor.pooled,
        "held": None if math.isnan(tested.held) else tested.held,
        "held_seen": None if math.isnan(tested.held) else tested.seen,
        "held_later": None if math.isnan(later) else later,
        "later_days": days,
        "ranges": ranges,
    }


def describe_satisfaction(sensor: Sensor, options: TrafficOptions) -> list[str]:
    """Return sentences, without full stops, on the share of days that satisfy the property."""
    if sensor.stated:
        return describe_stated(sensor, sensor.stated)
    (later, days), tested = held_later(sensor), sensor.calibrated
    if sensor.pooled:
        lines = [
            "pooled from similar clients of the federation,"
            f" because it has fewer than {options.newcomer_days} days of readings of its own"
        ]
    elif tested.windows:
        lines = list(_describe_calibration(sensor, options))
    else:
        lines = [
            "all past days satisfy it, because it was inferred from them;"
            " tasks.traffic.property=calibrated estimates the share of later days"
        ]
    if days:
        complete = "1 complete day" if days == 1 else f"{days} complete days"
        lines.append(f"satisfied on {percent(later)} of {complete} after its training part")
    elif sensor.past < len(sensor.values):
        lines.append("no day after its training part is complete, so none was tested")
    return lines


def _describe_calibration(sensor: Sensor, options: TrafficOptions) -> Iterator[str]:
    """Yield sentences on the past windows by which ranges were calibrated."""
    tested, fewest = sensor.calibrated, fewest_windows(options.coverage)
    windows = "days" if options.horizon * sensor.step == DAY else f"windows of {options.horizon} readings"
    complete = "complete " if tested.seen == 1 else ""
    yield f"satisfied on {percent(tested.held)} of {tested.windows} {complete}past {windows}, each tested without itself"
    if tested.seen < 1:
        missing = "less than 1 %" if tested.seen > 0.99 else percent(1 - tested.seen)
        yield (
            f"these {windows} lacked {missing} of their readings, because fewer than {fewest} were complete;"
            f" the share of complete {windows} is lower"
        )
    if tested.windows < fewest:
        yield (
            f"{percent(options.coverage)} needs {fewest} past {windows}:"
            f" the ranges are widened, but later {windows} may violate them more often"
        )
