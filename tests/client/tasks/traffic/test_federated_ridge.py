"""Federated ridge: sums of a client, and the average with its own ridge forecast."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from client.owner.policy import Policy
from client.tasks.traffic.inference import forecast
from client.tasks.traffic.sensor import compute_sums, prepare, with_federated_ridge
from common.arrays import add
from common.errors import ConfigError, WireError
from common.options import Scalar
from common.tasks.traffic.counts import LAGS, PAIRS, SUMS, linear_forecast
from common.tasks.traffic.options import TrafficOptions
from common.wire.messages import TrainRequest
from deploy.simulation.grid import InProcessGrid
from server.run import run
from tests.support.build import learner_of
from tests.support.sensors import HISTORY, HORIZON, MEASURES, road_config, road_grid, rounds_of, sensor, stores, world

OPTIONS = TrafficOptions(history=HISTORY, horizon=HORIZON)
CONFIG = road_config("fedavg", tasks__traffic__count_offset=True)
FIRST, SECOND = (prepare(sensor(k), MEASURES, OPTIONS, residual=True) for k in (0, 1))
SUMS_OF_SECOND = compute_sums(SECOND, OPTIONS)


def test_the_forecast_is_the_mean_of_own_and_federated_ridge() -> None:
    weights, joint = (
        linear_forecast(SUMS_OF_SECOND, HISTORY, HORIZON),
        with_federated_ridge(FIRST, SUMS_OF_SECOND, OPTIONS),
    )
    for first in (HISTORY, 200, len(FIRST.values) - HORIZON):
        past = (FIRST.values - FIRST.base)[first - HISTORY : first, 0]
        np.testing.assert_allclose(joint.ridge[first, :, 0], (FIRST.ridge[first, :, 0] + past @ weights) / 2)
    assert not joint.ridge[: HISTORY - 1].any()
    assert joint.shared.shape == (HISTORY, HORIZON)


def test_without_sums_the_own_ridge_forecast_stays() -> None:
    assert with_federated_ridge(FIRST, {}, OPTIONS) is FIRST
    np.testing.assert_array_equal(
        with_federated_ridge(FIRST, {n: a * 0 for n, a in SUMS_OF_SECOND.items()}, OPTIONS).ridge, FIRST.ridge
    )


def test_sums_of_other_variables_are_refused() -> None:
    with pytest.raises(WireError, match="variables"):
        with_federated_ridge(FIRST, {LAGS: np.zeros((12, 2, 2)), PAIRS: np.ones(12)}, OPTIONS)


def test_a_learner_sums_its_sensors_and_subtracts_its_own_part() -> None:
    learner = learner_of(CONFIG, MEASURES, [sensor(0), sensor(1)])
    sent = learner.counts()
    for name, both in add(compute_sums(FIRST, OPTIONS), SUMS_OF_SECOND).items():
        np.testing.assert_allclose(sent[name], both)
    total = add(sent, SUMS_OF_SECOND) | {"else": np.ones(1)}
    left = learner.without_own(total, sent)
    np.testing.assert_allclose(left[LAGS], SUMS_OF_SECOND[LAGS])
    assert left["else"] == 1
    assert learner.without_own({"else": np.ones(1)}, sent) == {"else": np.ones(1)}


@pytest.mark.parametrize("name", SUMS)
def test_counts_of_a_late_reply_are_not_subtracted_from_the_sums(name: str) -> None:
    """Check sums with enough pairs but smaller squares than the client's, and the reverse."""
    learner = learner_of(CONFIG, MEASURES, [sensor(0)])
    sent = learner.counts()
    sums = {each: a * (0.9 if each == name else 2) for each, a in sent.items()}
    assert learner.without_own(sums, sent) is sums


def test_rounding_errors_of_the_sums_are_tolerated() -> None:
    learner = learner_of(CONFIG, MEASURES, [sensor(0)])
    sent = learner.counts()
    rounded = {LAGS: sent[LAGS] * (1 - 1e-15), PAIRS: sent[PAIRS]}
    assert not learner.without_own(rounded, sent)[PAIRS].any()


@pytest.mark.parametrize("hours", [1, HISTORY - 1, HISTORY, HISTORY + 1])
def test_a_short_series_does_not_keep_other_sensors_from_the_federated_ridge(hours: int) -> None:
    long, short = sensor(0), sensor(1)
    short = replace(short, values=short.values[:hours], observed=short.observed[:hours])
    learner, alone = (learner_of(CONFIG, MEASURES, series) for series in ([long, short], [long]))
    request = TrainRequest(1, "", world(CONFIG), statics=SUMS_OF_SECOND)
    np.testing.assert_array_equal(learner.batch(request)["ridge"][: len(long.values)], alone.batch(request)["ridge"])
    assert learner.baselines("test", SUMS_OF_SECOND) == alone.baselines("test", SUMS_OF_SECOND)


def test_training_and_evaluation_start_from_the_averaged_ridge() -> None:
    learner, model = learner_of(CONFIG, MEASURES, [sensor(0)]), world(CONFIG)
    joint, request = (
        with_federated_ridge(FIRST, SUMS_OF_SECOND, OPTIONS),
        TrainRequest(1, "", model, statics=SUMS_OF_SECOND),
    )
    np.testing.assert_allclose(learner.batch(request)["ridge"], joint.ridge.astype(np.float32))
    np.testing.assert_allclose(learner.batch(TrainRequest(1, "", model))["ridge"], FIRST.ridge.astype(np.float32))
    _, places = FIRST.targets(FIRST.test, HORIZON)
    expected = FIRST.error(FIRST.profile[places] + joint.ridge[FIRST.test], places)
    assert learner.baselines("test", SUMS_OF_SECOND)[0]["ridge_mse"] == pytest.approx(expected)
    assert learner.evaluate(model, SUMS_OF_SECOND, "test")[0]["mse"] == pytest.approx(expected, rel=1e-5)


def test_the_papers_model_has_no_ridge() -> None:
    learner = learner_of(road_config("fedavg", model="paper"), MEASURES, [sensor(0)])
    assert "ridge" not in learner.batch(TrainRequest(1, "", {}, statics=SUMS_OF_SECOND))
    assert not any(sums.any() for sums in learner.counts().values())  # unused sums are not sent


def test_forecasts_beyond_the_series_use_the_averaged_ridge() -> None:
    learner, model = learner_of(CONFIG, MEASURES, [sensor(0)]), world(CONFIG)
    alone, together = (
        forecast(learner, learner.sensors[0], model, HORIZON, statics) for statics in ({}, SUMS_OF_SECOND)
    )
    whole = prepare(sensor(0), MEASURES, OPTIONS, residual=True, whole=True)
    usual, local, joint = (whole.scaler.scale(a)[:, 0] for a in (alone.profile, alone.student, together.student))
    shared = (whole.values - whole.base)[-HISTORY:, 0] @ linear_forecast(SUMS_OF_SECOND, HISTORY, HORIZON)
    np.testing.assert_allclose(joint - usual, (local - usual + shared) / 2, atol=1e-5)


def test_a_federation_sums_and_reports_the_ridge_baseline(tmp_path: Path) -> None:
    def metrics_of(folder: Path, **options: Scalar) -> dict[str, float]:
        run(road_grid(stores(2), InProcessGrid, Policy(allow_counts="clear")), road_config("fedstl", **options), folder)
        return rounds_of(folder)[-1].metrics

    alone, together = metrics_of(tmp_path / "a"), metrics_of(tmp_path / "b", tasks__traffic__count_offset=True)
    assert together["ridge_mse"] != alone["ridge_mse"]
    assert together["profile_mse"] == alone["profile_mse"]


def test_federated_ridge_without_own_ridge_is_refused() -> None:
    with pytest.raises(ConfigError, match="ridge=none"):
        road_config("fedavg", tasks__traffic__count_offset=True, tasks__traffic__ridge="none")


def test_counts_are_the_sums_only() -> None:
    assert set(learner_of(CONFIG, MEASURES, [sensor(0)]).counts()) == set(SUMS)
