"""A sensor's formula as text and as JSON, with the share of days that satisfy it."""

import math
from typing import Any

import torch

from client.tasks.traffic.formula_property import Stated, past_days
from client.tasks.traffic.past_days import JudgedWindows, judge_windows
from client.tasks.traffic.prepare import Sensor
from common.logic.formula import And, Formula
from common.logic.mining import mine
from common.logic.rescale import with_digits
from common.tasks.traffic.vocabulary import duration
from deploy.tasks.traffic.clock import percent
from deploy.tasks.traffic.formula_words import describe_formula

MOST_MINED = 3
"""Number of the tightest properties that are listed."""

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
        *_parts(sensor, phi, phi.formula),
        "",
        *describe_stated(sensor, phi),
        *([] if phi.written is not None else _tightest(sensor, phi)),
    ]


def stated_json(sensor: Sensor, phi: Stated) -> dict[str, Any]:
    """Return the formula as JSON; shares without any window are null."""
    past, later = _past_and_later(sensor)
    return {
        "site": sensor.series.name,
        "formula": None if phi.formula is None else str(phi.formula),
        "words": _words(sensor, phi),
        "anchor": "midnight" if phi.at_midnight else "forecast",
        "held": None if math.isnan(past.share) else past.share,
        "past_days": len(past.first),
        "worst_day": _moment(sensor, past) if len(past.first) else None,
        "worst_robustness": float(past.robustness.min()) if len(past.first) else None,
        "held_later": None if math.isnan(later.share) else later.share,
        "later_days": len(later.first),
    }


def _parts(sensor: Sensor, phi: Stated, formula: Formula) -> list[str]:
    """Return one line for each conjunct: its text and its words."""
    shown = _shown(formula)
    parts = shown.parts if isinstance(shown, And) else (shown,)
    width = max(len(str(part)) for part in parts)
    words = (describe_formula(part, sensor.step, at_midnight=phi.at_midnight) for part in parts)
    return [f"  {part!s:{width}}  {text}" for part, text in zip(parts, words, strict=True)]


def _tightest(sensor: Sensor, phi: Stated) -> list[str]:
    """Return the tightest properties of any template, with their slack."""
    days = past_days(phi, sensor.values, sensor.slots, sensor.usable)
    found = mine(torch.from_numpy(days), phi.names)[:MOST_MINED]
    about = (f"  template {m.template}, windows of {m.width}: slack {m.slack:.2f} standard deviations" for m in found)
    return ["", "tightest properties of its past", *about]


def _shown(phi: Formula) -> Formula:
    """Return φ with numbers of four significant digits."""
    return with_digits(phi, 4)


def _words(sensor: Sensor, phi: Stated) -> str:
    shown = None if phi.formula is None else _shown(phi.formula)
    return describe_formula(shown, sensor.step, at_midnight=phi.at_midnight) if shown is not None else NONE


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
    clock = f"{reading * step // 3600:02d}:{reading * step % 3600 // 60:02d}"
    return (
        f"not corrected: the formula judges forecasts that begin at midnight, and this one begins at {clock};"
        " end the data at midnight, or train with tasks.traffic.anchor=forecast"
    )


def _past_and_later(sensor: Sensor) -> tuple[JudgedWindows, JudgedWindows]:
    return judge_windows(sensor, 0, sensor.past), judge_windows(sensor, sensor.past, len(sensor.values))


def _moment(sensor: Sensor, windows: JudgedWindows) -> str:
    time = sensor.series.times(sensor.step)[windows.first[windows.worst]].astype("datetime64[m]")
    return str(time).replace("T", " ").removesuffix(" 00:00")
