"""A sensor made ready: what is fitted on which part, what gaps may tell, and what a short or constant series becomes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from client.tasks.traffic.data.series import Series
from client.tasks.traffic.prepare import Sensor, prepare
from client.tasks.traffic.profile import profile
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.ranges import calibrated, groups_of, infer
from common.tasks.traffic.vocabulary import SensorVariables
from tests.support.sensors import HISTORY, HORIZON, MEASURES, sensor

DAYS, TRAIN, VALIDATION = 20, 16 * 24, 18 * 24


def ready(series: Series, residual: bool = True, **options: Any) -> Sensor:
    given = {"history": HISTORY, "horizon": HORIZON, **options}
    return prepare(series, MEASURES, TrafficOptions.model_validate(given), residual=residual)


def with_values(series: Series, values: np.ndarray, observed: np.ndarray | None = None) -> Series:
    return replace(series, values=values, observed=series.observed if observed is None else observed)


def fitted(one: Sensor) -> tuple[np.ndarray, ...]:
    """All that training alone decides."""
    return one.scaler.mean, one.scaler.std, one.ranges.low, one.ranges.high, one.profile


def test_a_reading_s_slot_is_its_time_of_the_week_by_the_sensors_clock() -> None:
    """2024-01-03 is a Wednesday."""
    one = ready(sensor(0, DAYS, "2024-01-03T05:00"))
    assert one.slots[:3].tolist() == [53, 54, 55]
    assert (one.week, one.slots[2 * 168]) == (168, 53)
    daily = Series("day", np.datetime64("2024-01-06T00:00", "m"), np.arange(40.0)[:, None], np.ones((40, 1), bool))
    weekly = prepare(
        daily,
        SensorVariables(variables=("v",), step_seconds=86400),
        TrafficOptions(history=7, horizon=1),
        residual=True,
    )
    assert (weekly.week, weekly.slots[:3].tolist()) == (7, [5, 6, 0])


def test_everything_is_learnt_from_the_training_part() -> None:
    one, series = ready(sensor(0, DAYS)), sensor(0, DAYS)
    past = series.values[:TRAIN]
    np.testing.assert_allclose(one.scaler.mean, past.mean(0))
    np.testing.assert_allclose(one.scaler.std, past.std(0))
    np.testing.assert_allclose(one.values, (series.values - past.mean(0)) / past.std(0))
    later = np.where(np.arange(len(series.values))[:, None] < TRAIN, series.values, 1e5)
    for a, b in zip(fitted(ready(with_values(series, later))), fitted(one), strict=True):
        np.testing.assert_array_equal(a, b)


def test_windows_target_their_own_part() -> None:
    one = ready(sensor(0, DAYS))
    assert one.train.tolist() == list(range(HISTORY, TRAIN - HORIZON + 1))
    assert one.starts("validation").tolist() == list(range(TRAIN, VALIDATION - HORIZON + 1))
    assert one.starts("test").tolist() == list(range(VALIDATION, DAYS * 24 - HORIZON + 1))
    truth, places = one.targets(np.array([TRAIN]), HORIZON)
    assert places.tolist() == [[TRAIN, TRAIN + 1, TRAIN + 2]]
    np.testing.assert_array_equal(truth, one.values[None, TRAIN : TRAIN + HORIZON])


@pytest.mark.parametrize("kind", ["calibrated", "weekday", "paper"])
def test_the_property_is_that_of_the_training_readings(kind: str) -> None:
    one = ready(sensor(0, DAYS), property=kind, coverage=0.7)
    past, slots, days = one.values[:TRAIN], one.slots[:TRAIN], np.arange(TRAIN) // 24
    groups = groups_of("paper" if kind == "paper" else "hourly", 168)
    expected, held = infer(past, slots, groups), np.nan
    if kind == "calibrated":
        expected, held, _ = calibrated(past, slots, days, groups, 0.7, 24)
    np.testing.assert_array_equal(one.ranges.low, expected.low)
    np.testing.assert_array_equal(one.ranges.high, expected.high)
    np.testing.assert_equal(one.held, held)
    assert not one.ranges.excess(past, slots).any(), "it holds on every reading of its past"


def test_weeks_begin_on_monday_whenever_the_series_does() -> None:
    """From a Wednesday on, sixteen days are three weeks, of which each is judged by the other two."""
    series = sensor(0, DAYS, "2024-01-03T00:00")
    one = ready(series, coverage=0.5)
    days = 2 + np.arange(TRAIN) // 24
    expected, held, _ = calibrated(one.values[:TRAIN], one.slots[:TRAIN], days, groups_of("hourly", 168), 0.5, 24)
    np.testing.assert_array_equal(one.ranges.low, expected.low)
    assert one.held == held


def test_forecasts_are_departures_from_the_profile_or_under_the_paper_from_nothing() -> None:
    series = sensor(0, DAYS)
    default, paper = ready(series), ready(series, residual=False)
    usual = profile(default.values, default.slots, np.arange(len(series.values)) < TRAIN, 168)
    np.testing.assert_array_equal(default.base, usual)
    np.testing.assert_array_equal(paper.profile, usual)
    assert not paper.base.any()


def gappy(filled_with: float) -> Series:
    """Readings 30 to 59 and two of the test part are gaps that the reader has filled."""
    series = sensor(0, DAYS)
    observed = series.observed.copy()
    observed[30:60] = observed[VALIDATION + 1 : VALIDATION + 3] = False
    return with_values(series, np.where(observed, series.values, filled_with), observed)


def test_a_filled_gap_tells_nothing_of_what_is_usual_or_obeyed() -> None:
    one, other = ready(gappy(0.0)), ready(gappy(5e4))
    for a, b in zip(fitted(one), fitted(other), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_filled_gap_is_no_truth_to_be_measured_by() -> None:
    one = ready(gappy(0.0))
    places = np.array([[VALIDATION, VALIDATION + 1, VALIDATION + 2], [VALIDATION + 3, VALIDATION + 4, VALIDATION + 5]])
    forecast = np.full((2, 3, 1), 0.5)
    errors = [(0.5 - one.values[place, 0]) ** 2 for place in (VALIDATION, *range(VALIDATION + 3, VALIDATION + 6))]
    assert one.error(forecast, places) == pytest.approx(np.mean(errors))
    assert np.isnan(one.error(forecast[:1, 1:], places[:1, 1:]))


def test_last_week_s_error_is_that_of_the_same_hours_a_week_ago() -> None:
    one = ready(sensor(0, DAYS))
    places = one.targets(one.test, HORIZON)[1]
    expected = np.mean([(one.values[t, 0] - one.values[t - 168, 0]) ** 2 for t in places.ravel()])
    assert one.last_week_error(places) == pytest.approx(expected)
    assert np.isnan(one.last_week_error(np.array([[100, 101, 102]]))), "there was no week before"


def test_a_constant_series_is_its_own_profile_and_property() -> None:
    series = sensor(0, DAYS)
    one = ready(with_values(series, np.full_like(series.values, 7.0)))
    assert not one.values.any()
    assert not one.profile.any()
    assert (one.ranges.width, one.held, one.scaler.std.tolist()) == (0.0, 1.0, [1.0])


def cut(hours: int) -> Series:
    series = sensor(0, DAYS)
    return Series("short", series.start, series.values[:hours], series.observed[:hours])


@pytest.mark.parametrize("hours", [1, 2, 5, 11, 13])
def test_a_series_shorter_than_a_window_has_nothing_to_train_on(hours: int) -> None:
    one = ready(cut(hours))
    assert len(one.train) == 0
    assert np.isfinite(one.profile).all()
    assert np.isnan(one.held)


@pytest.mark.parametrize(("hours", "windows"), [(14, 1), (15, 2), (20, 5)])
def test_one_window_is_enough_to_train(hours: int, windows: int) -> None:
    """Of 14 hours one is held out for testing and one for validation; 9 and 3 are left for a window."""
    assert len(ready(cut(hours)).train) == windows


def test_where_no_reading_of_the_past_was_observed_anything_obeys() -> None:
    series = sensor(0, DAYS)
    observed = np.arange(len(series.values))[:, None] >= TRAIN
    one = ready(with_values(series, series.values, observed))
    for reading in (1e9, -1e9):
        assert not one.ranges.excess(np.full((1, 3, 1), reading), np.array([[0, 1, 2]])).any()
    assert not one.profile.any()


def test_of_two_variables_a_row_counts_where_both_were_observed() -> None:
    series = sensor(0, DAYS, variables=2)
    observed = series.observed.copy()
    observed[40:50, 1] = False
    options = TrafficOptions(history=HISTORY, horizon=HORIZON)
    given = with_values(series, np.where(observed, series.values, 9e3), observed)
    one = prepare(given, SensorVariables(variables=("volume", "speed")), options, residual=True)
    known = observed.all(axis=1) & (np.arange(len(series.values)) < TRAIN)
    np.testing.assert_array_equal(one.profile, profile(one.values, one.slots, known, 168))
    assert one.ranges.low.shape == (168, 2)
    assert not one.ranges.excess(one.values[known], one.slots[known]).any()
