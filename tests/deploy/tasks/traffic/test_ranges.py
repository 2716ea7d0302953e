"""Properties by time of day: formulas, their words, and messages about missing readings."""

from dataclasses import replace

import numpy as np
import pytest

from client.tasks.traffic.data.series import Series
from client.tasks.traffic.sensor import Sensor, prepare
from common.errors import DataError
from common.logic.parser import parse
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.vocabulary import SensorVariables
from deploy.tasks.traffic.property import as_json, as_lines, by_clock
from deploy.tasks.traffic.words import digits_for, number

START = np.datetime64("2024-01-01T00:00", "m")
"""A Monday."""


def sensor(values: np.ndarray, options: TrafficOptions, step: int = 60) -> Sensor:
    table = values.reshape(len(values), -1).astype(np.float64)
    variables = tuple(f"x{d}" for d in range(table.shape[1]))
    series = Series("a", START, table, np.ones(table.shape, bool))
    return prepare(series, SensorVariables(variables=variables, step_seconds=60 * step), options, residual=True)


def two_levels(step: int = 60) -> np.ndarray:
    """Return five weeks: 1,000 or 1,010 on working days from 08:00 to 10:00, else 200; 50 at weekends."""
    day = 24 * 60 // step
    slot = np.arange(35 * day) % (7 * day)
    busy = (slot % day * step // 60 >= 8) & (slot % day * step // 60 < 10)
    work = np.where(busy, 1000 + 10 * (np.arange(len(slot)) // day % 2), 200)
    return np.where(slot // day >= 5, 50, work)


WEEKDAY = TrafficOptions(property="weekday")


@pytest.mark.parametrize("step", [60, 15])
def test_equal_hours_form_one_range_for_any_step(step: int) -> None:
    found = by_clock(sensor(two_levels(step), WEEKDAY, step), ("volume",))
    a = 60 // step
    assert [str(r.formula) for r in found] == [
        f"G[0,{8 * a - 1}] (volume <= 200 & volume >= 200)",
        f"G[{8 * a},{10 * a - 1}] (volume <= 1010 & volume >= 1000)",
        f"G[{10 * a},{24 * a - 1}] (volume <= 200 & volume >= 200)",
        f"G[0,{24 * a - 1}] (volume <= 50 & volume >= 50)",
    ]
    assert found[1].words == "on working days between 08:00 and 10:00 the volume stays within 1,000 and 1,010"
    assert found[3].words == "at weekends the volume stays at 50"
    assert [str(parse(str(r.formula))) for r in found] == [str(r.formula) for r in found]


def test_the_paper_s_ranges_hold_every_day() -> None:
    found = by_clock(sensor(two_levels(), TrafficOptions(property="paper")), ("volume",))
    assert {r.stretch.days for r in found} == {"every day"}
    assert found[1].words == "every day between 08:00 and 10:00 the volume stays within 50 and 1,010"


def test_ranges_contain_the_inferred_bounds() -> None:
    rng = np.random.default_rng(3)
    one = sensor(rng.normal(0, 1, (5 * 168, 2)), TrafficOptions(coverage=0.8))
    low, high = one.scaler.unscale(one.ranges.low), one.scaler.unscale(one.ranges.high)
    ranges = by_clock(one, ("x0", "x1"))
    assert {r.variable for r in ranges} == {"x0", "x1"}
    for r in ranges:
        d, days = int(r.variable[1]), slice(0, 24) if r.stretch.days == "on working days" else slice(5 * 24, 6 * 24)
        assert (r.low <= low[days, d][r.stretch.first : r.stretch.last + 1]).all()
        assert (r.high >= high[days, d][r.stretch.first : r.stretch.last + 1]).all()
        assert r.low >= low[days, d][r.stretch.first : r.stretch.last + 1].min() - 0.01
    for days_ in ("on working days", "at weekends"):
        hours = [
            h
            for r in ranges
            if (r.stretch.days, r.variable) == (days_, "x1")
            for h in range(r.stretch.first, r.stretch.last + 1)
        ]
        assert hours == list(range(24))


def test_a_variable_that_never_was_negative_has_no_lower_bound_below_zero() -> None:
    counts = np.random.default_rng(0).poisson(0.7, 5 * 168).astype(float)
    words = {r.words for r in by_clock(sensor(counts, TrafficOptions()), ("cars",))}
    assert words
    assert all("does not exceed" in text for text in words)
    below = {r.words for r in by_clock(sensor(counts - 5, TrafficOptions()), ("change",))}
    assert all("stays within -" in text for text in below)


def test_the_text_has_the_share_of_days_that_satisfy_the_property() -> None:
    measures = SensorVariables(variables=("volume",))
    lines = as_lines(sensor(two_levels(), TrafficOptions()), measures, TrafficOptions())
    assert lines[0] == "a: property of its training part (calibrated ranges, 60 minutes a step)"
    assert "on working days, volume" in lines
    assert lines[-2:] == [
        "satisfied on 100 % of 28 complete past days, each tested without itself",
        "satisfied on 100 % of 7 complete days after its training part",
    ]
    plain = as_lines(sensor(two_levels(), WEEKDAY), measures, WEEKDAY)
    assert "all past days satisfy it, because it was inferred from them" in plain[-2]
    young = as_lines(sensor(two_levels()[: 9 * 24], TrafficOptions()), measures, TrafficOptions())
    assert young[-2].startswith("90 % needs 9 past days: the ranges are widened")


def unseen(one: Sensor, missing: np.ndarray) -> Sensor:
    """Prepare the same series without some of its readings, T × D."""
    measures = SensorVariables(variables=tuple(f"x{d}" for d in range(missing.shape[1])), step_seconds=one.step)
    return prepare(replace(one.series, observed=~missing), measures, TrafficOptions(), residual=True)


def test_incomplete_days_are_reported() -> None:
    """Every fourth hour of five weeks is missing."""
    full = sensor(two_levels(), TrafficOptions())
    found = unseen(full, np.arange(len(full.values))[:, None] % 4 == 0)
    lines = as_lines(found, SensorVariables(variables=("x0",)), TrafficOptions())
    assert lines[-3].startswith("satisfied on ")
    assert lines[-3].endswith("% of 28 past days, each tested without itself")
    assert lines[-2].startswith("these days lacked 25 % of their readings, because fewer than 9 were complete")
    assert lines[-1] == "no day after its training part is complete, so none was tested"
    values = as_json(found, SensorVariables(variables=("x0",)), TrafficOptions())
    assert (values["held_seen"], values["held_later"], values["later_days"]) == (0.75, None, 0)


def test_one_later_day_is_counted() -> None:
    full = sensor(two_levels(), TrafficOptions())
    hours = np.arange(len(full.values))[:, None]
    lines = as_lines(unseen(full, hours >= full.past + 24), SensorVariables(variables=("x0",)), TrafficOptions())
    assert lines[-1] == "satisfied on 100 % of 1 complete day after its training part"


def test_json_has_the_same_values() -> None:
    found = as_json(sensor(two_levels(), WEEKDAY), SensorVariables(variables=("volume",)), WEEKDAY)
    assert (found["site"], found["held"], found["held_later"], found["later_days"]) == ("a", None, 1.0, 7)
    assert found["ranges"][1] == {
        "days": "on working days",
        "from": "08:00",
        "to": "10:00",
        "variable": "volume",
        "low": 1000.0,
        "high": 1010.0,
        "formula": "G[8,9] (volume <= 1010 & volume >= 1000)",
        "words": "on working days between 08:00 and 10:00 the volume stays within 1,000 and 1,010",
    }


def test_without_readings_nothing_is_inferred() -> None:
    unseen = Series("a", START, np.ones((400, 1)), np.zeros((400, 1), bool))
    measures = SensorVariables(variables=("volume",))
    with pytest.raises(DataError, match="no reading in its training part"):
        by_clock(prepare(unseen, measures, TrafficOptions(), residual=True), ("volume",))


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ([False, True], "no reading of 'speed' in its training part; leave that column out, or give more of its past"),
        ([True, True], "no reading in its training part; leave it out, or give more"),
    ],
)
def test_a_variable_without_a_reading_in_training_is_named(missing: list[bool], message: str) -> None:
    full = sensor(np.random.default_rng(0).random((28 * 24, 2)), TrafficOptions())
    hours = np.arange(len(full.values))[:, None]
    with pytest.raises(DataError, match=message):
        by_clock(unseen(full, (hours < full.past) & missing), ("volume", "speed"))


def test_variables_that_are_never_read_together_are_refused() -> None:
    full = sensor(np.random.default_rng(0).random((28 * 24, 2)), TrafficOptions())
    odd = np.arange(len(full.values)) % 2 == 1
    with pytest.raises(DataError, match="no moment in its training part at which all its variables were read"):
        by_clock(unseen(full, np.stack([odd, ~odd], axis=1)), ("volume", "speed"))


@pytest.mark.parametrize(
    ("span", "value", "text"),
    [(1700, 1904.4, "1,904"), (80, 8.25, "8.2"), (0.05, 0.01234, "0.0123"), (0, -0.001, "0.00")],
)
def test_numbers_have_the_precision_of_a_thousandth_of_the_span(span: float, value: float, text: str) -> None:
    assert number(value, digits_for(span)) == text
