"""Traffic learner: metrics and baselines of one sensor, of several, and of short or constant series."""

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from client.tasks.traffic.data.series import Series
from client.tasks.traffic.metrics import MAX_EARLIER, bounds, correct, coverage, earlier_windows
from client.tasks.traffic.sensor import Sensor
from client.training.stacks import Tensors
from common.tasks.traffic.properties import satisfaction
from common.tasks.traffic.vocabulary import HOUR
from common.wire.messages import TrainRequest
from tests.support.road_learners import CONFIG, DAYS, PAPER, forecast_of, learner, random_model, series_with_gaps
from tests.support.sensors import HISTORY, HORIZON, road_config, sensor, world


def test_metrics_are_errors_and_satisfaction_before_and_after_the_teacher() -> None:
    of, model = learner(series_with_gaps(), config=PAPER), random_model(PAPER)
    [prepared] = of.sensors
    metrics, weights = of.evaluate(model, {}, "test")
    forecasts = np.array([forecast_of(of, model, prepared, int(first)) for first in prepared.test])
    places = prepared.test[:, None] + np.arange(HORIZON)
    seen, truth, at = prepared.observed[places], prepared.values[places], prepared.slots[places]
    corrected = prepared.ranges.project(forecasts, at)
    excess = prepared.ranges.excess(forecasts, at)
    expected = {
        "mse": np.square(forecasts - truth)[seen].mean(),
        "teacher_mse": np.square(corrected - truth)[seen].mean(),
        "loss": np.square(forecasts - truth)[seen].mean() + excess.mean(),
        **satisfaction(excess),
        "teacher_rho_point": 1.0,
        "teacher_rho_window": 1.0,
        "teacher_rho_trace": 1.0,
    }
    assert 0 <= metrics.pop("coverage80") <= 1
    assert weights.pop("coverage80") == float(len(prepared.test))
    assert metrics == pytest.approx(expected, rel=1e-5)
    assert weights == dict.fromkeys(metrics, float(len(prepared.test)))
    assert metrics["rho_trace"] < 1
    assert of.evaluate(model, {}, "validation")[0].keys() == expected.keys() | {"coverage80"}


def test_the_teacher_goes_nine_tenths_of_the_way_to_ranges_that_hold_on_nine_windows_of_ten() -> None:
    of, model = learner(series_with_gaps()), random_model(CONFIG)
    [prepared] = of.sensors
    first, places = prepared.test, prepared.test[:, None] + np.arange(HORIZON)
    forecasts = np.array([forecast_of(of, model, prepared, int(begin)) for begin in first])
    margins = prepared.margins(first)
    nearest = prepared.ranges.project(forecasts, prepared.slots[places], margins)
    np.testing.assert_allclose(correct(prepared, forecasts, first), 0.9 * nearest + 0.1 * forecasts)
    metrics, _ = of.evaluate(model, {}, "test")
    distances = prepared.ranges.excess(forecasts, prepared.slots[places], margins)
    assert metrics["teacher_rho_trace"] == metrics["rho_trace"] == satisfaction(distances)["rho_trace"] < 1
    assert metrics["teacher_mse"] < metrics["mse"]


def test_baselines_and_satisfaction_by_the_truth_do_not_depend_on_the_model() -> None:
    of = learner(series_with_gaps())
    [prepared] = of.sensors
    metrics, weights = of.baselines("test", {})
    places = prepared.test[:, None] + np.arange(HORIZON)
    seen, truth = prepared.observed[places], prepared.values[places]
    whole, margins = seen.all(axis=(1, 2)), prepared.margins(prepared.test)
    satisfied = satisfaction(prepared.ranges.excess(truth, prepared.slots[places], margins)[whole])
    assert metrics == pytest.approx(
        {
            **{f"truth_{name}": share for name, share in satisfied.items()},
            "profile_mse": np.square(prepared.profile[places] - truth)[seen].mean(),
            "ridge_mse": np.square(prepared.profile[places] + prepared.ridge[prepared.test] - truth)[seen].mean(),
            "last_week_mse": np.square(prepared.values[places - 168] - truth)[seen].mean(),
            "property_width": float(np.mean(prepared.ranges.high - prepared.ranges.low)),
        }
    )
    assert set(weights.values()) == {float(len(prepared.test))}


def windows_of(batch: Tensors) -> np.ndarray:
    """Return history and targets of every training window of a batch."""
    places = batch["starts"].numpy()[:, None] + np.arange(-HISTORY, HORIZON)
    return batch["values"].numpy()[places, 0]


def test_no_window_crosses_from_one_sensor_to_the_next() -> None:
    series = (sensor(0, DAYS), sensor(1, 6), sensor(2, 9))
    of = learner(*series)
    parts = [learner(part) for part in series]
    request = TrainRequest(1, "toy:0", {})
    expected = np.concatenate([windows_of(part.batch(request)) for part in parts])
    np.testing.assert_array_equal(windows_of(of.batch(request)), expected)
    assert (of.examples, of.size) == (len(expected), sum(len(part.values) for part in series))
    assert of.examples == sum(part.examples for part in parts)


def test_several_sensors_have_the_weakest_property_and_metrics_weighted_by_windows() -> None:
    series = (sensor(0, DAYS), sensor(1, 30))
    of, model = learner(*series), random_model(CONFIG)
    parts = [learner(part) for part in series]
    for bound, weakest in (("low", np.minimum), ("high", np.maximum)):
        np.testing.assert_array_equal(of.property()[bound], weakest(*(part.property()[bound] for part in parts)))
    (metrics, weights), each = of.evaluate(model, {}, "test"), [part.evaluate(model, {}, "test") for part in parts]
    windows = [w["mse"] for _, w in each]
    assert windows[0] != windows[1]
    assert metrics == pytest.approx({k: np.average([m[k] for m, _ in each], weights=windows) for k in metrics})
    assert set(weights.values()) == {sum(windows)}


def test_a_sensor_without_training_readings_does_not_widen_the_property() -> None:
    unread = sensor(1, 30)
    unread = replace(unread, observed=unread.observed & (np.arange(len(unread.values)) >= 24 * 24)[:, None])
    for several in ([unread, sensor(0, DAYS)], [sensor(0, DAYS), unread]):
        weakest, expected = learner(*several).property(), learner(sensor(0, DAYS)).property()
        assert weakest.keys() == expected.keys()
        for name, bound in expected.items():
            np.testing.assert_array_equal(weakest[name], bound)
    alone = learner(unread).property()
    assert (np.isneginf(alone["low"]).all(), np.isposinf(alone["high"]).all(), int(alone["days"][0])) == (True, True, 0)


def test_a_sensor_without_test_windows_does_not_change_the_metrics() -> None:
    both, single = learner(sensor(0, DAYS), sensor(1, 1)), learner(sensor(0, DAYS))
    model = random_model(CONFIG)
    assert both.evaluate(model, {}, "test") == single.evaluate(model, {}, "test")
    assert both.baselines("test", {}) == single.baselines("test", {})


def test_a_sensor_without_true_test_readings_does_not_change_the_errors() -> None:
    dead = sensor(1, DAYS)
    dead = replace(dead, observed=dead.observed & (np.arange(len(dead.values)) < 18 * 24)[:, None])
    both, single, model = learner(sensor(0, DAYS), dead), learner(sensor(0, DAYS)), random_model(CONFIG)
    metrics, weights = both.evaluate(model, {}, "test")
    expected, windows = single.evaluate(model, {}, "test")
    assert {n: metrics[n] for n in ("mse", "teacher_mse", "loss")} == {
        n: expected[n] for n in ("mse", "teacher_mse", "loss")
    }
    assert (weights["mse"], weights["rho_point"]) == (windows["mse"], windows["rho_point"] + 1), (
        "the dead sensor has one window"
    )
    assert both.baselines("test", {})[0]["profile_mse"] == single.baselines("test", {})[0]["profile_mse"]
    assert "mse" not in learner(dead).evaluate(model, {}, "test")[0]


def test_a_series_shorter_than_a_window_has_no_examples_and_no_metrics() -> None:
    short = sensor(0, DAYS)
    of = learner(Series("short", short.start, short.values[:10], short.observed[:10]))
    assert (of.examples, of.evaluate(world(CONFIG), {}, "test"), of.baselines("test", {})) == (0, ({}, {}), ({}, {}))


def test_a_constant_series_is_forecast_exactly_and_satisfies_its_property() -> None:
    series = sensor(0, DAYS)
    of = learner(replace(series, values=np.full_like(series.values, 5.0)))
    metrics, _ = of.evaluate(world(CONFIG), {}, "test")
    assert (metrics["mse"], metrics["rho_trace"], of.violation(world(CONFIG))) == (0.0, 1.0, 0.0)
    assert of.baselines("test", {})[0]["property_width"] == 0.0


def test_the_default_starts_at_the_ridge_baseline() -> None:
    of = learner()
    metrics, baselines = of.evaluate(world(CONFIG), {}, "test")[0], of.baselines("test", {})[0]
    assert metrics["mse"] == pytest.approx(baselines["ridge_mse"])
    assert baselines["ridge_mse"] != pytest.approx(baselines["profile_mse"], rel=1e-3)
    plain = learner(config=road_config("fedavg", tasks__traffic__ridge="none"))
    assert "ridge_mse" not in plain.baselines("test", {})[0]
    assert plain.evaluate(world(CONFIG), {}, "test")[0]["mse"] == pytest.approx(baselines["profile_mse"])


HOURLY = cast(Sensor, SimpleNamespace(step=HOUR))


def test_intervals_cover_four_fifths_of_independent_errors() -> None:
    rng = np.random.default_rng(0)
    errors, first = rng.normal(size=(900, 6, 2)), np.arange(900)
    assert coverage(HOURLY, errors, first, first >= 300) == pytest.approx(0.8, abs=0.02)


def test_an_interval_uses_only_errors_that_came_before() -> None:
    errors, first = np.zeros((60, 4, 1)), np.arange(60)
    errors[40:] = 1.0  # the first block after the change still has the old interval [0, 0]
    assert coverage(HOURLY, errors, first, (first >= 40) & (first < 44)) == 0.0


def test_without_enough_errors_there_is_no_interval() -> None:
    low, high = bounds(np.zeros((19, 3, 1)))
    assert np.isnan(low).all()
    assert np.isnan(high).all()
    gaps = np.zeros((25, 2, 1))
    gaps[:10, 1] = np.nan
    assert np.isfinite(bounds(gaps)[0][:, 0]).tolist() == [True, False]
    assert np.isnan(coverage(HOURLY, np.zeros((5, 3, 1)), np.arange(5), np.ones(5, bool)))


def test_earlier_windows_are_recent_and_few() -> None:
    first = earlier_windows(HOURLY, np.arange(2000), 2000)
    assert len(first) <= MAX_EARLIER
    assert first.min() >= 2000 - 28 * 24
    assert len(earlier_windows(HOURLY, np.arange(0), 2000)) == 0
