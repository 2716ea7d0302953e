"""Prepared sensors: training part only, gaps, short series and constant series."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from client.tasks.traffic.baseline import profile
from client.tasks.traffic.calibration import WindowedReadings, calibrate
from client.tasks.traffic.data.series import Series
from client.tasks.traffic.sensor import Sensor, prepare
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.properties import groups_of, infer
from common.tasks.traffic.vocabulary import SensorVariables
from tests.support.sensors import HISTORY, HORIZON, MEASURES, sensor

DAYS, TRAIN, VALIDATION = 20, 16 * 24, 18 * 24


def ready(series: Series, residual: bool = True, **options: Any) -> Sensor:
    values = {"history": HISTORY, "horizon": HORIZON, **options}
    return prepare(series, MEASURES, TrafficOptions.model_validate(values), residual=residual)


def with_values(series: Series, values: np.ndarray, observed: np.ndarray | None = None) -> Series:
    return replace(series, values=values, observed=series.observed if observed is None else observed)


def fitted_parts(prepared: Sensor) -> tuple[np.ndarray, ...]:
    """Return all quantities that are fitted to the training part."""
    return prepared.scaler.mean, prepared.scaler.std, prepared.ranges.low, prepared.ranges.high, prepared.profile


def test_a_reading_s_slot_is_its_time_of_the_week_by_the_sensors_clock() -> None:
    """Check a series from 2024-01-03, a Wednesday."""
    prepared = ready(sensor(0, DAYS, "2024-01-03T05:00"))
    assert prepared.slots[:3].tolist() == [53, 54, 55]
    assert (prepared.week, prepared.slots[2 * 168]) == (168, 53)
    daily = Series("day", np.datetime64("2024-01-06T00:00", "m"), np.arange(40.0)[:, None], np.ones((40, 1), bool))
    weekly = prepare(
        daily,
        SensorVariables(variables=("v",), step_seconds=86400),
        TrafficOptions(history=7, horizon=1),
        residual=True,
    )
    assert (weekly.week, weekly.slots[:3].tolist()) == (7, [5, 6, 0])


def test_everything_is_fitted_to_the_training_part() -> None:
    prepared, series = ready(sensor(0, DAYS)), sensor(0, DAYS)
    past = series.values[:TRAIN]
    np.testing.assert_allclose(prepared.scaler.mean, past.mean(0))
    np.testing.assert_allclose(prepared.scaler.std, past.std(0))
    np.testing.assert_allclose(prepared.values, (series.values - past.mean(0)) / past.std(0))
    later = np.where(np.arange(len(series.values))[:, None] < TRAIN, series.values, 1e5)
    for a, b in zip(fitted_parts(ready(with_values(series, later))), fitted_parts(prepared), strict=True):
        np.testing.assert_array_equal(a, b)


def test_windows_target_their_own_part() -> None:
    prepared = ready(sensor(0, DAYS))
    assert prepared.train.tolist() == list(range(HISTORY, TRAIN - HORIZON + 1))
    assert prepared.starts("validation").tolist() == list(range(TRAIN, VALIDATION - HORIZON + 1))
    assert prepared.starts("test").tolist() == list(range(VALIDATION, DAYS * 24 - HORIZON + 1))
    truth, places = prepared.targets(np.array([TRAIN]), HORIZON)
    assert places.tolist() == [[TRAIN, TRAIN + 1, TRAIN + 2]]
    np.testing.assert_array_equal(truth, prepared.values[None, TRAIN : TRAIN + HORIZON])


@pytest.mark.parametrize("kind", ["calibrated", "weekday", "paper"])
def test_the_property_is_that_of_the_training_readings(kind: str) -> None:
    prepared = ready(sensor(0, DAYS), property=kind, coverage=0.7)
    past, slots = prepared.values[:TRAIN], prepared.slots[:TRAIN]
    groups = groups_of("paper" if kind == "paper" else "hourly", 168)
    expected = infer(past, slots, groups)
    if kind == "calibrated":
        found = calibrate(windows_of(prepared, TRAIN, 0), groups, 0.7)
        assert prepared.calibrated.held == found.held
        expected = found.ranges.above(prepared.scaler.scale(np.zeros((1, 1))))
    else:
        assert np.isnan(prepared.calibrated.held)
        assert not prepared.ranges.excess(past, slots).any(), "every reading of its past satisfies it"
    np.testing.assert_allclose(prepared.ranges.low, expected.low)
    np.testing.assert_allclose(prepared.ranges.high, expected.high)


def windows_of(prepared: Sensor, length: int, hour: int) -> WindowedReadings:
    """Return the first readings in windows of a horizon, counted from midnight; the first begins at an hour."""
    windows = (np.arange(length) + hour) // HORIZON
    return WindowedReadings(
        prepared.values[:length], prepared.slots[:length], np.ones(length, bool), TRAIN, windows, HORIZON
    )


def test_windows_are_counted_from_midnight_for_any_start_of_the_series() -> None:
    prepared = ready(sensor(0, DAYS, "2024-01-03T05:00"), coverage=0.5)
    length = len(prepared.values)
    readings = replace(windows_of(prepared, length, 5), past=prepared.past)
    expected = calibrate(readings, groups_of("hourly", 168), 0.5)
    np.testing.assert_allclose(prepared.ranges.high, expected.ranges.high)
    np.testing.assert_allclose(prepared.calibrated.margins, expected.margins)


def test_forecasts_are_residuals_of_the_profile_or_under_the_paper_plain() -> None:
    series = sensor(0, DAYS)
    default, paper = ready(series), ready(series, residual=False)
    weekly_profile = profile(default.values, default.slots, np.arange(len(series.values)) < TRAIN, 168)
    np.testing.assert_array_equal(default.base, weekly_profile)
    np.testing.assert_array_equal(paper.profile, weekly_profile)
    assert not paper.base.any()


def gappy(filled_with: float) -> Series:
    """Return a series with filled gaps at readings 30 to 59 and at two of the test part."""
    series = sensor(0, DAYS)
    observed = series.observed.copy()
    observed[30:60] = observed[VALIDATION + 1 : VALIDATION + 3] = False
    return with_values(series, np.where(observed, series.values, filled_with), observed)


def test_a_filled_gap_does_not_change_profile_and_property() -> None:
    prepared, refilled = ready(gappy(0.0)), ready(gappy(5e4))
    for a, b in zip(fitted_parts(prepared), fitted_parts(refilled), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_filled_gap_does_not_count_in_errors() -> None:
    prepared = ready(gappy(0.0))
    places = np.array([[VALIDATION, VALIDATION + 1, VALIDATION + 2], [VALIDATION + 3, VALIDATION + 4, VALIDATION + 5]])
    forecast = np.full((2, 3, 1), 0.5)
    errors = [(0.5 - prepared.values[place, 0]) ** 2 for place in (VALIDATION, *range(VALIDATION + 3, VALIDATION + 6))]
    assert prepared.error(forecast, places) == pytest.approx(np.mean(errors))
    assert np.isnan(prepared.error(forecast[:1, 1:], places[:1, 1:]))


def test_last_week_s_error_is_that_of_the_same_hours_a_week_ago() -> None:
    prepared = ready(sensor(0, DAYS))
    places = prepared.targets(prepared.test, HORIZON)[1]
    expected = np.mean([(prepared.values[t, 0] - prepared.values[t - 168, 0]) ** 2 for t in places.ravel()])
    assert prepared.last_week_error(places) == pytest.approx(expected)
    assert np.isnan(prepared.last_week_error(np.array([[100, 101, 102]]))), "there is no week before"


def test_a_constant_series_is_its_own_profile_and_property() -> None:
    series = sensor(0, DAYS)
    prepared = ready(with_values(series, np.full_like(series.values, 7.0)))
    assert not prepared.values.any()
    assert not prepared.profile.any()
    assert (prepared.ranges.width, prepared.calibrated.held, prepared.scaler.std.tolist()) == (0.0, 1.0, [1.0])


def cut(hours: int) -> Series:
    series = sensor(0, DAYS)
    return Series("short", series.start, series.values[:hours], series.observed[:hours])


@pytest.mark.parametrize("hours", [1, 2, 5, 11, 13])
def test_a_series_shorter_than_a_window_has_no_training_windows(hours: int) -> None:
    prepared = ready(cut(hours))
    assert len(prepared.train) == 0
    assert np.isfinite(prepared.profile).all()
    assert prepared.calibrated.windows <= hours


@pytest.mark.parametrize(("hours", "windows"), [(14, 1), (15, 2), (20, 5)])
def test_one_window_is_enough_to_train(hours: int, windows: int) -> None:
    """Check 14 hours, of which one is for testing and one for validation; 9 and 3 make one window."""
    assert len(ready(cut(hours)).train) == windows


def test_without_observed_past_readings_every_reading_satisfies_the_property() -> None:
    series = sensor(0, DAYS)
    observed = np.arange(len(series.values))[:, None] >= TRAIN
    prepared = ready(with_values(series, series.values, observed))
    for reading in (1e9, -1e9):
        assert not prepared.ranges.excess(np.full((1, 3, 1), reading), np.array([[0, 1, 2]])).any()
    assert not prepared.profile.any()


def test_of_two_variables_a_row_counts_where_both_were_observed() -> None:
    series = sensor(0, DAYS, variables=2)
    observed = series.observed.copy()
    observed[40:50, 1] = False
    options = TrafficOptions(history=HISTORY, horizon=HORIZON)
    series_with_gaps = with_values(series, np.where(observed, series.values, 9e3), observed)
    prepared = prepare(series_with_gaps, SensorVariables(variables=("volume", "speed")), options, residual=True)
    usable = observed.all(axis=1) & (np.arange(len(series.values)) < TRAIN)
    np.testing.assert_array_equal(prepared.profile, profile(prepared.values, prepared.slots, usable, 168))
    assert prepared.ranges.low.shape == (168, 2)
    assert (prepared.ranges.excess(prepared.values[usable], prepared.slots[usable]) > 0).mean() < 0.1
