"""The traffic task on a client: Eq 2 against a slow reference, its property, its metrics, and several sensors in one."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from client.stacked_tensors import Tensors
from client.tasks.learner import training_loss
from client.tasks.traffic.data.series import Series
from client.tasks.traffic.learner import TrafficLearner
from client.tasks.traffic.prepare import Sensor
from common.arrays import Arrays
from common.config.run import RunConfig
from common.models import tensors
from common.tasks.traffic.ranges import Ranges, obedience
from common.wire.messages import TrainRequest
from tests.support.build import learner_of
from tests.support.sensors import HISTORY, HORIZON, MEASURES, road_config, sensor, world

DAYS, TRAIN = 20, 16 * 24
CONFIG = road_config("fedavg", tasks__traffic__property_weight=0.7)
PAPER = road_config("fedavg", model="paper", tasks__traffic__property="paper")


def restless(config: RunConfig) -> Arrays:
    """A model whose forecasts leave the profile, and the property."""
    rng = np.random.default_rng(3)
    return {n: (a + rng.normal(0, 0.3, a.shape)).astype(np.float32) for n, a in world(config).items()}


def learner(*series: Series, config: RunConfig = CONFIG) -> TrafficLearner:
    return learner_of(config, MEASURES, series or (sensor(0, DAYS),))


def gappy(number: int = 0) -> Series:
    """A twentieth of the readings are gaps, filled with nonsense."""
    series = sensor(number, DAYS)
    observed = np.random.default_rng(5).random(series.values.shape) > 0.05
    return replace(series, values=np.where(observed, series.values, 0.0), observed=observed)


def forecast_of(of: TrafficLearner, model: Arrays, one: Sensor, first: int) -> np.ndarray:
    """One window's forecast, P × D, straight from the network."""
    past = slice(first - HISTORY, first)
    departure = torch.from_numpy((one.values[past] - one.base[past]).astype(np.float32)[None])
    network = copy.deepcopy(of.module)
    network.load_state_dict(tensors(model))
    with torch.no_grad():
        line = one.line[first] if one.line.size else 0.0
        return network(departure)[0].double().numpy() + one.base[first : first + HORIZON] + line


def slow_loss(of: TrafficLearner, model: Arrays, one: Sensor, starts: list[int], ranges: Ranges) -> float:
    """F_i = MSE(Y, Ŷ) + λ·L_p(φ, Ŷ) over windows, reading by reading."""
    squares, distances = [], []
    for first in starts:
        for t, value in enumerate(forecast_of(of, model, one, first)[:, 0]):
            place = first + t
            low, high = ranges.low[one.slots[place], 0], ranges.high[one.slots[place], 0]
            distances.append(max(low - value, value - high, 0.0))
            if one.observed[place, 0]:
                squares.append((value - one.values[place, 0]) ** 2)
    return float(np.mean(squares) + of.options.property_weight * np.mean(distances))


def step(of: TrafficLearner, model: Arrays, rows: list[int], shared: Arrays | None = None) -> float:
    batch = of.batch(TrainRequest(1, "toy:0", model, shared or {}))
    return float(of.loss(tensors(model), batch, {"rows": torch.tensor(rows)}))


@pytest.mark.parametrize("config", [CONFIG, PAPER], ids=["default", "paper"])
def test_the_loss_is_eq_2_and_filled_gaps_are_no_truth(config: RunConfig) -> None:
    of, model = learner(gappy(), config=config), restless(config)
    [one] = of.sensors
    rows = [0, 7, 150, 150, of.examples - 1]
    expected = slow_loss(of, model, one, [int(one.train[r]) for r in rows], one.ranges)
    assert expected > 0.1
    assert step(of, model, rows) == pytest.approx(expected, rel=1e-5)


def test_in_the_cluster_s_epochs_its_property_takes_the_place_of_the_client_s_own() -> None:
    of, model = learner(config=PAPER), restless(PAPER)
    [one] = of.sensors
    phi = Ranges(one.ranges.low - 0.5, one.ranges.high - 0.2)
    rows = [3, 90, 200]
    expected = slow_loss(of, model, one, [int(one.train[r]) for r in rows], phi)
    assert step(of, model, rows, phi.arrays()) == pytest.approx(expected, rel=1e-5)
    assert step(of, model, rows) != pytest.approx(expected, rel=1e-3)


def test_the_violation_is_the_distance_to_the_closest_forecasts_that_obey() -> None:
    of, model = learner(config=PAPER), restless(PAPER)
    [one] = of.sensors
    distances = []
    for first in one.train.tolist():
        values = forecast_of(of, model, one, first)
        at = one.slots[first : first + HORIZON]
        distances.append(np.abs(values - one.ranges.corrected(values, at)).mean())
    assert of.violation(model) == pytest.approx(np.mean(distances), rel=1e-5)
    assert learner().violation(world(CONFIG)) == 0.0, "the profile is a mean of what the ranges hold"


def test_a_long_series_is_judged_on_some_windows_evenly_spaced(monkeypatch: pytest.MonkeyPatch) -> None:
    of, model = learner(config=PAPER), restless(PAPER)
    [one] = of.sensors
    monkeypatch.setattr("client.tasks.traffic.learner.JUDGED", 10)
    distances = []
    for first in one.train[:: of.examples // 10].tolist():
        values, at = forecast_of(of, model, one, first), one.slots[first : first + HORIZON]
        distances.append(one.ranges.excess(values, at).mean())
    assert of.violation(model) == pytest.approx(np.mean(distances), rel=1e-5)


def test_metrics_are_errors_and_obedience_before_and_after_the_teacher() -> None:
    of, model = learner(gappy(), config=PAPER), restless(PAPER)
    [one] = of.sensors
    metrics, weights = of.evaluate(model, {}, "test")
    forecasts = np.array([forecast_of(of, model, one, int(first)) for first in one.test])
    places = one.test[:, None] + np.arange(HORIZON)
    seen, truth, at = one.observed[places], one.values[places], one.slots[places]
    taught = one.ranges.corrected(forecasts, at)
    excess = one.ranges.excess(forecasts, at)
    expected = {
        "mse": np.square(forecasts - truth)[seen].mean(),
        "teacher_mse": np.square(taught - truth)[seen].mean(),
        "loss": np.square(forecasts - truth)[seen].mean() + excess.mean(),
        **obedience(excess),
        "teacher_rho_point": 1.0,
        "teacher_rho_window": 1.0,
        "teacher_rho_trace": 1.0,
    }
    assert metrics == pytest.approx(expected, rel=1e-5)
    assert weights == dict.fromkeys(metrics, float(len(one.test)))
    assert metrics["rho_trace"] < 1
    assert of.evaluate(model, {}, "validation")[0].keys() == metrics.keys()


def test_the_lines_and_the_truth_s_own_obedience_hold_whatever_the_model() -> None:
    of = learner(gappy())
    [one] = of.sensors
    metrics, weights = of.baselines("test", {})
    places = one.test[:, None] + np.arange(HORIZON)
    seen, truth = one.observed[places], one.values[places]
    obeys = obedience(one.ranges.excess(truth, one.slots[places]) * seen)
    assert metrics == pytest.approx(
        {
            **{f"truth_{name}": share for name, share in obeys.items()},
            "profile_mse": np.square(one.profile[places] - truth)[seen].mean(),
            "ridge_mse": np.square(one.profile[places] + one.line[one.test] - truth)[seen].mean(),
            "last_week_mse": np.square(one.values[places - 168] - truth)[seen].mean(),
            "property_width": float(np.mean(one.ranges.high - one.ranges.low)),
        }
    )
    assert set(weights.values()) == {float(len(one.test))}


def test_forecasts_in_chunks_are_forecasts_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    of, model = learner(), restless(CONFIG)
    [one] = of.sensors
    whole = of.forecasts(model, one, one.test)
    monkeypatch.setattr("client.tasks.traffic.learner.FORECAST_AT_ONCE", 5)
    np.testing.assert_allclose(of.forecasts(model, one, one.test), whole, atol=1e-6)
    assert of.forecasts(model, one, one.test[:0]).shape == (0, HORIZON, 1)


def windows_of(batch: Tensors) -> np.ndarray:
    """History and targets of every training window of a batch."""
    places = batch["starts"].numpy()[:, None] + np.arange(-HISTORY, HORIZON)
    return batch["values"].numpy()[places, 0]


def test_of_several_sensors_no_window_crosses_from_one_into_the_next() -> None:
    series = (sensor(0, DAYS), sensor(1, 6), sensor(2, 9))
    of = learner(*series)
    apart = [learner(one) for one in series]
    request = TrainRequest(1, "toy:0", {})
    expected = np.concatenate([windows_of(one.batch(request)) for one in apart])
    np.testing.assert_array_equal(windows_of(of.batch(request)), expected)
    assert (of.examples, of.size) == (len(expected), sum(len(one.values) for one in series))
    assert of.examples == sum(one.examples for one in apart)


def test_of_several_sensors_the_property_is_the_weakest_and_metrics_weigh_their_windows() -> None:
    series = (sensor(0, DAYS), sensor(1, 30))
    of, model = learner(*series), restless(CONFIG)
    apart = [learner(one) for one in series]
    for bound, weakest in (("low", np.minimum), ("high", np.maximum)):
        np.testing.assert_array_equal(of.property()[bound], weakest(*(one.property()[bound] for one in apart)))
    (metrics, weights), each = of.evaluate(model, {}, "test"), [one.evaluate(model, {}, "test") for one in apart]
    windows = [w["mse"] for _, w in each]
    assert windows[0] != windows[1]
    assert metrics == pytest.approx({k: np.average([m[k] for m, _ in each], weights=windows) for k in metrics})
    assert set(weights.values()) == {sum(windows)}


def test_a_sensor_without_a_reading_to_learn_from_opens_no_bound_of_the_others() -> None:
    unread = sensor(1, 30)
    unread = replace(unread, observed=unread.observed & (np.arange(len(unread.values)) >= 24 * 24)[:, None])
    for several in ([unread, sensor(0, DAYS)], [sensor(0, DAYS), unread]):
        found, expected = learner(*several).property(), learner(sensor(0, DAYS)).property()
        assert found.keys() == expected.keys()
        for name, told in expected.items():
            np.testing.assert_array_equal(found[name], told)
    alone = learner(unread).property()
    assert (np.isneginf(alone["low"]).all(), np.isposinf(alone["high"]).all(), int(alone["days"][0])) == (True, True, 0)


def test_a_sensor_too_short_to_test_on_leaves_the_others_metrics() -> None:
    both, one = learner(sensor(0, DAYS), sensor(1, 1)), learner(sensor(0, DAYS))
    model = restless(CONFIG)
    assert both.evaluate(model, {}, "test") == one.evaluate(model, {}, "test")
    assert both.baselines("test", {}) == one.baselines("test", {})


def test_a_sensor_without_a_true_reading_to_test_on_leaves_the_others_errors() -> None:
    dead = sensor(1, DAYS)
    dead = replace(dead, observed=dead.observed & (np.arange(len(dead.values)) < 18 * 24)[:, None])
    both, one, model = learner(sensor(0, DAYS), dead), learner(sensor(0, DAYS)), restless(CONFIG)
    metrics, weights = both.evaluate(model, {}, "test")
    expected, windows = one.evaluate(model, {}, "test")
    assert {n: metrics[n] for n in ("mse", "teacher_mse", "loss")} == {
        n: expected[n] for n in ("mse", "teacher_mse", "loss")
    }
    assert (weights["mse"], weights["rho_point"]) == (windows["mse"], windows["rho_point"] + 1), (
        "the last it could forecast"
    )
    assert both.baselines("test", {})[0]["profile_mse"] == one.baselines("test", {})[0]["profile_mse"]
    assert "mse" not in learner(dead).evaluate(model, {}, "test")[0]


def test_a_series_too_short_has_nothing_to_train_or_measure() -> None:
    short = sensor(0, DAYS)
    of = learner(Series("short", short.start, short.values[:10], short.observed[:10]))
    assert (of.examples, of.evaluate(world(CONFIG), {}, "test"), of.baselines("test", {})) == (0, ({}, {}), ({}, {}))
    assert not any(sums.any() for sums in of.counts().values())


def test_a_constant_series_is_forecast_exactly_and_obeys() -> None:
    series = sensor(0, DAYS)
    of = learner(replace(series, values=np.full_like(series.values, 5.0)))
    metrics, _ = of.evaluate(world(CONFIG), {}, "test")
    assert (metrics["mse"], metrics["rho_trace"], of.violation(world(CONFIG))) == (0.0, 1.0, 0.0)
    assert of.baselines("test", {})[0]["property_width"] == 0.0


def test_rows_are_drawn_from_the_generator_among_all_windows() -> None:
    of = learner()
    rows = of.step_inputs(300, torch.Generator().manual_seed(1))["rows"]
    assert rows.shape == (300, 4)
    assert torch.equal(rows, of.step_inputs(300, torch.Generator().manual_seed(1))["rows"])
    assert set(rows.unique().tolist()) <= set(range(of.examples))
    assert rows.unique().numel() > 0.9 * of.examples


def test_models_are_compared_on_the_same_draws_of_the_training_windows() -> None:
    of, model = learner(), restless(CONFIG)
    rows = of.step_inputs(8, torch.Generator().manual_seed(0))["rows"]
    assert training_loss(of, model, {}) == pytest.approx(np.mean([step(of, model, draw.tolist()) for draw in rows]))
    assert training_loss(of, model, {}) == training_loss(of, model, {})


def test_nothing_of_the_series_is_changed() -> None:
    series = sensor(0, DAYS)
    kept = series.values.copy()
    of, model = learner(series), restless(CONFIG)
    of.evaluate(model, {}, "test")
    of.baselines("test", {})
    step(of, model, [1, 2])
    np.testing.assert_array_equal(series.values, kept)


def test_under_noise_the_number_of_days_would_drown_the_bounds_and_is_left_out() -> None:
    noisy = road_config("fedstl", privacy__unit="client")
    assert learner(config=noisy).property().keys() == {"low", "high"}
    assert learner().property()["days"].tolist() == [TRAIN // 24]


def test_the_default_starts_at_the_sensor_s_own_ridge_line() -> None:
    of = learner()
    measured, lines = of.evaluate(world(CONFIG), {}, "test")[0], of.baselines("test", {})[0]
    assert measured["mse"] == pytest.approx(lines["ridge_mse"])
    assert lines["ridge_mse"] != pytest.approx(lines["profile_mse"], rel=1e-3)
    plain = learner(config=road_config("fedavg", tasks__traffic__ridge="none"))
    assert "ridge_mse" not in plain.baselines("test", {})[0]
    assert plain.evaluate(world(CONFIG), {}, "test")[0]["mse"] == pytest.approx(lines["profile_mse"])
