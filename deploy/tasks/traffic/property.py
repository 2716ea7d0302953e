"""What a sensor's past obeys, as a person or a program reads it, and on how many days it holds."""

import math
from itertools import groupby
from typing import Any

from client.tasks.traffic.cold_start import is_cold_start
from client.tasks.traffic.inference import held_later
from client.tasks.traffic.prepare import Sensor
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.vocabulary import SensorVariables, duration
from deploy.tasks.traffic.clock import percent
from deploy.tasks.traffic.ranges import by_clock


def as_lines(sensor: Sensor, measures: SensorVariables, options: TrafficOptions) -> list[str]:
    """The property as a person reads it: by the clock, and how many days it holds on; raises as `by_clock` does."""
    clauses, name = by_clock(sensor, measures.variables), sensor.series.name
    kind = "a difference" if options.property == "difference" else f"{options.property} ranges"
    whose = "what members alike and its own training part obey" if sensor.pooled else "what its training part obeys"
    lines = [f"{name}: {whose} ({kind}, {duration(measures.step_seconds)} a step)"]
    width = max(len(str(c.formula)) for c in clauses)
    for title, rows in groupby(clauses, lambda c: f"{c.stretch.days}, {c.variable}"):
        lines += ["", title, *(f"  {'–'.join(c.stretch.clock)}  {c.formula!s:{width}}  {c.words}" for c in rows)]
    return [*lines, "", *held(sensor, options)]


def as_json(sensor: Sensor, measures: SensorVariables, options: TrafficOptions) -> dict[str, Any]:
    """The same for programs; shares that were not judged, and bounds that there are not, are null."""
    later, days = held_later(sensor)
    ranges: list[dict[str, Any]] = []
    for c in by_clock(sensor, measures.variables):
        when = {"days": c.stretch.days, "from": c.stretch.clock[0], "to": c.stretch.clock[1], "variable": c.variable}
        bounds = {"low": c.low, "high": None if math.isinf(c.high) else c.high}
        ranges.append({**when, **bounds, "formula": str(c.formula), "words": c.words})
    return {
        "site": sensor.series.name,
        "property": options.property,
        "pooled": sensor.pooled,
        "held": None if math.isnan(sensor.held) else sensor.held,
        "held_seen": None if math.isnan(sensor.held) else sensor.seen,
        "held_later": None if math.isnan(later) else later,
        "later_days": days,
        "ranges": ranges,
    }


def held(sensor: Sensor, options: TrafficOptions) -> list[str]:
    """On how many days the property holds, as sentences without their full stops."""
    later, days = held_later(sensor)
    if sensor.pooled:
        lines = [
            "pooled from members of the federation alike in shape,"
            f" for want of {options.newcomer_days} days of readings of its own"
        ]
    elif not math.isnan(sensor.held):
        lines = _calibrated(sensor)
    elif options.property in ("calibrated", "difference") or is_cold_start(sensor, options):
        lines = ["not calibrated: less than two weeks of readings in training; later days may well break it"]
    else:
        lines = ["all past days obey, since they made it; only tasks.traffic.property=calibrated judges how many will"]
    if days:
        whole = "1 day" if days == 1 else f"{days} days"
        lines.append(f"of {whole} observed in full after its training part, {percent(later)} obeyed")
    elif sensor.past < len(sensor.values):
        lines.append("no day after its training part was observed in full, so none was judged")
    return lines


def _calibrated(sensor: Sensor) -> list[str]:
    """Of days that lack readings fewer break a property than will of whole ones."""
    if sensor.seen == 1:
        return [f"held on {percent(sensor.held)} of past days observed in full, each judged without its own week"]
    missing = "less than 1 %" if sensor.seen > 0.99 else percent(1 - sensor.seen)
    return [
        f"held on {percent(sensor.held)} of past days, each judged without its own week",
        f"these days lacked {missing} of their readings, for want of two weeks observed in full:"
        " of whole days fewer will obey",
    ]
