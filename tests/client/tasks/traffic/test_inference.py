"""Forecasts by a trained model of a sensor whose weeks are all alike."""

import numpy as np
import pytest

from client.tasks.traffic.inference import forecast, held_later
from client.tasks.traffic.sensor import OwnForecaster, is_cold_start
from client.training.comparison import unit_means
from common.errors import ConfigError, DataError
from common.models import parameters
from common.tasks.traffic.properties import POOLED
from tests.support.weekly_sensor import WEEKS, double_last_days, week, weekly_config, weekly_learner


def test_the_untrained_default_forecasts_the_profile_at_the_right_hours_and_in_the_units_of_the_data() -> None:
    hours = WEEKS * 168 + 31
    made = weekly_learner(hours=hours)
    result = forecast(made, made.sensors[0], parameters(made.module), 24, {})
    truth = np.resize(week(), hours + 24)[hours:, None]
    assert result.fault == ""
    assert result.times[0] == np.datetime64("2024-02-13T07:00")
    np.testing.assert_array_equal(np.diff(result.times), np.timedelta64(1, "h"))
    for forecasts in (result.student, result.corrected, result.profile):
        np.testing.assert_allclose(forecasts, truth, atol=1e-3)
    assert (result.low <= truth + 1e-9).all()
    assert (truth <= result.high + 1e-9).all()


def test_the_teacher_moves_what_violates_the_property_to_its_nearest_bound() -> None:
    made = weekly_learner()
    too_much = {**parameters(made.module), "linear.bias": np.full(24, 10.0, np.float32)}
    too_much["linear.bias"][3:] = 0
    result = forecast(made, made.sensors[0], too_much, 24, {})
    std = float(made.sensors[0].scaler.std[0])
    np.testing.assert_allclose(result.student[:3] - result.profile[:3], 10 * std, rtol=1e-5)
    np.testing.assert_allclose(result.corrected[:3], 0.9 * result.high[:3] + 0.1 * result.student[:3])
    assert result.marked[:3].all()


def test_the_interval_has_four_fifths_of_the_held_out_errors_at_each_step() -> None:
    rng = np.random.default_rng(0)

    def jitter(readings: np.ndarray) -> None:
        readings += rng.normal(0, 1, len(readings))

    made = weekly_learner(change=jitter)
    sensor, model = made.sensors[0], parameters(made.module)
    result = forecast(made, sensor, model, 6, {})
    first = np.concatenate([sensor.validation, sensor.test])
    first = first[first >= len(sensor.values) - 28 * 24]
    errors = sensor.targets(first, 6)[0] - made.forecasts(model, sensor, first)[:, :6]
    low, high = ((bound - result.student) / sensor.scaler.std for bound in (result.low80, result.high80))
    np.testing.assert_allclose(((low <= errors) & (errors <= high)).mean(axis=0), 0.8, atol=0.03)


def test_without_held_out_windows_there_is_no_interval_and_counts_stay_non_negative() -> None:
    short = weekly_learner(hours=130)
    assert np.isnan(forecast(short, short.sensors[0], parameters(short.module), 24, {}).low80).all()
    made = weekly_learner(change=double_last_days)
    result = forecast(made, made.sensors[0], parameters(made.module), 24, {})
    assert result.low80.min() >= 0
    assert (result.low80 <= result.high80).all()


def test_a_shorter_horizon_is_a_cut_and_a_longer_one_refused() -> None:
    made = weekly_learner()
    model = {**parameters(made.module), "linear.bias": np.arange(24, dtype=np.float32)}
    whole, cut = (forecast(made, made.sensors[0], model, steps, {}) for steps in (24, 5))
    np.testing.assert_array_equal(cut.student, whole.student[:5])
    np.testing.assert_array_equal(cut.times, whole.times[:5])
    with pytest.raises(ConfigError, match="forecasts 24 steps, not 25; set --horizon to 24 at most"):
        forecast(made, made.sensors[0], model, 25, {})


def test_the_paper_s_model_forecasts_readings_themselves() -> None:
    made = weekly_learner(weekly_config(model="paper"))
    silent = {name: np.zeros_like(a) for name, a in parameters(made.module).items()}
    result = forecast(made, made.sensors[0], silent, 24, {})
    np.testing.assert_allclose(result.student, float(made.sensors[0].scaler.mean[0]), rtol=1e-6)


def test_too_little_history_is_refused() -> None:
    made = weekly_learner(hours=119)
    with pytest.raises(DataError, match="119 readings are fewer than the 120"):
        forecast(made, made.sensors[0], parameters(made.module), 24, {})


def test_profile_and_property_are_learnt_from_all_readings_and_the_units_stay() -> None:
    made = weekly_learner(weekly_config(tasks__traffic__coverage=0.99), double_last_days)
    sensor = made.sensors[0]
    result = forecast(made, sensor, parameters(made.module), 24, {})
    readings = np.resize(week(), WEEKS * 168)
    double_last_days(readings)
    next_day = readings.reshape(WEEKS, 7, 24)[:, 0]  # the coming day is a Monday
    np.testing.assert_allclose(result.profile[:, 0], next_day.mean(0), atol=1e-3)
    np.testing.assert_array_equal(result.basis.scaler.mean, sensor.scaler.mean)
    assert (result.high[6:, 0] >= next_day.max(0)[6:]).all()
    assert result.basis.calibrated.held > 0
    assert held_later(result.basis)[1] == 0
    assert held_later(sensor)[1] > 0


def test_a_cold_start_client_forecasts_under_the_property_that_it_adopts() -> None:
    made = weekly_learner(hours=8 * 24)
    pooled = {name: np.full((1, 168, 1), end, np.float32) for name, end in zip(POOLED, (-7, 7), strict=True)}
    result = forecast(made, made.sensors[0], parameters(made.module), 24, pooled)
    assert result.basis.pooled
    np.testing.assert_allclose(result.high, made.sensors[0].scaler.unscale(np.full((24, 1), 7.0)))
    grown = weekly_learner(hours=10 * 24)  # its training split alone is still too short
    assert is_cold_start(grown.sensors[0], grown.options)
    assert not forecast(grown, grown.sensors[0], parameters(made.module), 24, pooled).basis.pooled


def test_the_sensor_s_own_ridge_regression_forecasts_without_a_model() -> None:
    made = weekly_learner(change=lambda readings: np.put(readings, np.arange(0, len(readings), 7), 3.0))
    sensor, own = made.sensors[0], OwnForecaster(made.options, made.variables)
    first = sensor.starts("test")
    error = sensor.error(own.forecasts({}, sensor, first), sensor.targets(first, made.options.horizon)[1])
    found = made.baseline_values({}, "test")
    assert unit_means(found["own ridge regression"], "mse") == pytest.approx([error])
    profile, _ = made.baselines("test", {})
    assert unit_means(found["weekly profile"], "mse") == pytest.approx([profile["profile_mse"]])
    result = forecast(own, sensor, {}, 24, {})
    assert np.isfinite(result.student).all()
    exact = forecast(made, sensor, parameters(made.module), 24, {})  # the untrained model adds nothing
    np.testing.assert_allclose(result.student, exact.student, atol=1e-4)
