"""Traffic learner: Eq 2 against a slow reference, property violation, mini-batches."""

import numpy as np
import pytest
import torch

from client.tasks.traffic.learner import TrafficLearner
from client.tasks.traffic.sensor import Sensor
from client.training.foresight import training_loss
from common.arrays import Arrays
from common.config.run import RunConfig
from common.tasks.traffic.properties import Ranges
from tests.support.road_learners import (
    CONFIG,
    DAYS,
    PAPER,
    TRAIN,
    forecast_of,
    learner,
    random_model,
    series_with_gaps,
    step,
)
from tests.support.sensors import HORIZON, road_config, sensor, world


def slow_loss(of: TrafficLearner, model: Arrays, sensor: Sensor, starts: list[int], ranges: Ranges) -> float:
    """Compute F_i = MSE(Y, Ŷ) + λ·L_p(φ, Ŷ) over windows, reading by reading."""
    squares, distances = [], []
    for first in starts:
        for t, value in enumerate(forecast_of(of, model, sensor, first)[:, 0]):
            place = first + t
            low, high = ranges.low[sensor.slots[place], 0], ranges.high[sensor.slots[place], 0]
            distances.append(max(low - value, value - high, 0.0))
            if sensor.observed[place, 0]:
                squares.append((value - sensor.values[place, 0]) ** 2)
    return float(np.mean(squares) + of.options.property_weight * np.mean(distances))


@pytest.mark.parametrize("config", [CONFIG, PAPER], ids=["default", "paper"])
def test_the_loss_is_eq_2_and_filled_gaps_do_not_count(config: RunConfig) -> None:
    of, model = learner(series_with_gaps(), config=config), random_model(config)
    [prepared] = of.sensors
    rows = [0, 7, 150, 150, of.examples - 1]
    expected = slow_loss(of, model, prepared, [int(prepared.train[r]) for r in rows], prepared.ranges)
    assert expected > 0.1
    assert step(of, model, rows) == pytest.approx(expected, rel=1e-5)


def test_a_cluster_s_property_replaces_the_client_s_own() -> None:
    of, model = learner(config=PAPER), random_model(PAPER)
    [prepared] = of.sensors
    phi = Ranges(prepared.ranges.low - 0.5, prepared.ranges.high - 0.2)
    rows = [3, 90, 200]
    expected = slow_loss(of, model, prepared, [int(prepared.train[r]) for r in rows], phi)
    assert step(of, model, rows, phi.arrays()) == pytest.approx(expected, rel=1e-5)
    assert step(of, model, rows) != pytest.approx(expected, rel=1e-3)


def test_the_violation_is_the_distance_to_the_closest_satisfying_forecasts() -> None:
    of, model = learner(config=PAPER), random_model(PAPER)
    [prepared] = of.sensors
    distances = []
    for first in prepared.train.tolist():
        values = forecast_of(of, model, prepared, first)
        at = prepared.slots[first : first + HORIZON]
        distances.append(np.abs(values - prepared.ranges.project(values, at)).mean())
    assert of.violation(model) == pytest.approx(np.mean(distances), rel=1e-5)
    wide = road_config("fedavg", tasks__traffic__coverage=0.99)
    assert learner(config=wide).violation(world(wide)) == 0.0, "the profile is a mean of readings within the ranges"


def test_the_violation_of_a_long_series_uses_evenly_spaced_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    of, model = learner(config=PAPER), random_model(PAPER)
    [prepared] = of.sensors
    monkeypatch.setattr("client.tasks.traffic.learner.PROPERTY_WINDOWS", 10)
    distances = []
    for first in prepared.train[:: of.examples // 10].tolist():
        values, at = forecast_of(of, model, prepared, first), prepared.slots[first : first + HORIZON]
        distances.append(prepared.ranges.excess(values, at).mean())
    assert of.violation(model) == pytest.approx(np.mean(distances), rel=1e-5)


def test_forecasts_in_chunks_are_forecasts_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    of, model = learner(), random_model(CONFIG)
    [prepared] = of.sensors
    whole = of.forecasts(model, prepared, prepared.test)
    monkeypatch.setattr("client.tasks.traffic.learner.BLOCK_WINDOWS", 5)
    np.testing.assert_allclose(of.forecasts(model, prepared, prepared.test), whole, atol=1e-6)
    assert of.forecasts(model, prepared, prepared.test[:0]).shape == (0, HORIZON, 1)


def test_rows_are_drawn_from_the_generator_among_all_windows() -> None:
    of = learner()
    rows = of.step_inputs(300, torch.Generator().manual_seed(1))["rows"]
    assert rows.shape == (300, 4)
    assert torch.equal(rows, of.step_inputs(300, torch.Generator().manual_seed(1))["rows"])
    assert set(rows.unique().tolist()) <= set(range(of.examples))
    assert rows.unique().numel() > 0.9 * of.examples


def test_models_are_compared_on_the_same_mini_batches() -> None:
    of, model = learner(), random_model(CONFIG)
    rows = of.step_inputs(8, torch.Generator().manual_seed(0))["rows"]
    assert training_loss(of, model, {}) == pytest.approx(np.mean([step(of, model, draw.tolist()) for draw in rows]))
    assert training_loss(of, model, {}) == training_loss(of, model, {})


def test_the_series_is_not_changed() -> None:
    series = sensor(0, DAYS)
    before = series.values.copy()
    of, model = learner(series), random_model(CONFIG)
    of.evaluate(model, {}, "test")
    of.baselines("test", {})
    step(of, model, [1, 2])
    np.testing.assert_array_equal(series.values, before)


def test_under_noise_the_number_of_days_is_left_out() -> None:
    noisy = road_config("fedstl", privacy__unit="client")
    assert learner(config=noisy).property().keys() == {"low", "high"}
    assert learner().property()["days"].tolist() == [TRAIN // 24]
