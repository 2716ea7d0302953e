"""Metrics in the vector of a secure sum, and their means."""

import math
from typing import Any

import numpy as np
import pytest

from common.arrays import add
from common.tasks.registry import TASKS
from common.tasks.summed_metrics import VALUES, SummedMetrics, summed_metrics

TWO = SummedMetrics({"loss": (0.0, 5.0), "rmse": (0.0, 1.0)}, ("simple",))
HELD = {"loss": 1.0, "rmse": 1.0}


def pack(**metrics: float) -> Any:
    return TWO.pack(metrics, HELD, {})


def test_means_are_over_the_clients_that_have_a_metric() -> None:
    total = add(add(pack(loss=1.0), pack(loss=2.0)), pack(rmse=0.5))
    assert TWO.means(total) == pytest.approx({"loss": 1.5, "rmse": 0.5})


def test_root_mean_squares_average_as_their_squares() -> None:
    assert TWO.means(add(pack(rmse=0.3), pack(rmse=0.4)))["rmse"] == pytest.approx(math.sqrt((0.09 + 0.16) / 2))


@pytest.mark.parametrize(("value", "mean"), [(7.0, 5.0), (-1.0, 0.0)])
def test_values_beyond_the_range_count_as_its_end(value: float, mean: float) -> None:
    assert TWO.means(pack(loss=value))["loss"] == mean


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_values_that_a_client_cannot_compute_are_absent(value: float) -> None:
    assert not TWO.pack({"loss": value}, HELD, {})[VALUES].any()
    assert not TWO.pack({"loss": 1.0}, {"loss": 0.0}, {})[VALUES].any()


def test_a_liar_moves_a_mean_to_an_end_of_its_range_at_most() -> None:
    total = {**pack(loss=1.0), VALUES: np.array([[900.0, 1.0], [-900.0, 1.0]])}
    assert TWO.means(total) == {"loss": 5.0, "rmse": 0.0}


def test_metrics_of_fewer_clients_than_the_noise_are_left_out() -> None:
    assert TWO.means(pack(loss=1.0), spread=0.6) == {}


def test_differences_of_all_units_are_added() -> None:
    sums = {"simple": np.array([2.0, -0.5, 0.5, 1.0, 1.0])}
    total = add(TWO.pack({}, {}, sums), TWO.pack({}, {}, sums))
    np.testing.assert_allclose(TWO.differences(total)["simple"], 2 * sums["simple"])
    assert not TWO.differences(TWO.template)
    assert not TWO.pack({}, {}, {"simple": np.full(5, np.nan), "other": np.ones(5)})["paired/simple"].any()


@pytest.mark.parametrize("task", ["rules", "sessions", "traffic", "ratings", "markets"])
def test_each_task_declares_its_metrics_and_their_ranges(task: str) -> None:
    spec = TASKS[task]
    assert all(metric.keys for metric in spec.metrics)
    for noised in (False, True):
        found = summed_metrics(spec, noised=noised)
        assert spec.objective.metric in found.ranges
        assert all(math.isfinite(low) and low < high < math.inf for low, high in found.ranges.values())
        assert found.clip**2 == pytest.approx(2 * len(found.ranges))
    assert f"cluster_{spec.objective.metric}" in summed_metrics(spec, noised=False).ranges
