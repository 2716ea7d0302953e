"""A sensor's property as text and as JSON, with the share of days that satisfy it."""

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
from deploy.tasks.traffic.stated_property import describe_stated, stated_json, stated_lines


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


def describe_satisfaction(sensor: Sensor, options: TrafficOptions) -> list[str]:
    """Return sentences, without full stops, on the share of days that satisfy the property."""
    if sensor.stated:
        return describe_stated(sensor, sensor.stated)
    later, days = held_later(sensor)
    if sensor.pooled:
        lines = [
            "pooled from similar clients of the federation,"
            f" because it has fewer than {options.newcomer_days} days of readings of its own"
        ]
    elif not math.isnan(sensor.held):
        lines = _calibrated(sensor)
    elif options.property in ("calibrated", "difference") or is_cold_start(sensor, options):
        lines = ["not calibrated: less than two weeks of readings in training; later days may violate it"]
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


def _calibrated(sensor: Sensor) -> list[str]:
    """Return the calibrated share, with a caveat if the tested days lack readings."""
    if sensor.seen == 1:
        return [f"satisfied on {percent(sensor.held)} of complete past days, each tested without its own week"]
    missing = "less than 1 %" if sensor.seen > 0.99 else percent(1 - sensor.seen)
    return [
        f"satisfied on {percent(sensor.held)} of past days, each tested without its own week",
        f"these days lacked {missing} of their readings, because fewer than two weeks were complete;"
        " the share of complete days is lower",
    ]
