"""Federated ridge of a closed form: in the ridge forecasts of a sensor, and what is no such sum."""

from dataclasses import replace

import numpy as np
import pytest

from client.tasks.traffic.inference import forecast
from client.tasks.traffic.sensor import compute_sums, joint_ridge, prepare, with_federated_ridge
from common.arrays import Arrays
from common.errors import WireError
from common.tasks.traffic import shared_ridge
from common.tasks.traffic.autocovariances import LAGS, PAIRS, linear_forecast
from common.tasks.traffic.options import TrafficOptions
from common.wire.messages import TrainRequest
from tests.support.build import learner_of
from tests.support.sensors import HISTORY, HORIZON, MEASURES, road_config, sensor, world

OPTIONS = TrafficOptions(history=HISTORY, horizon=HORIZON)
CONFIG = road_config("fedavg")
FIRST, SECOND = (prepare(sensor(k), MEASURES, OPTIONS, residual=True) for k in (0, 1))


def solved(share: float, penalty: float) -> Arrays:
    """Return a closed form of the second sensor's sums."""
    sizes = shared_ridge.sizes(MEASURES, OPTIONS, False)
    return {**sizes, **compute_sums(SECOND, OPTIONS), shared_ridge.CHOICE: np.array([share, penalty])}


SHARED = solved(1.0, np.inf)
"""Closed form that forecasts by the federated ridge alone."""


def test_the_own_ridge_is_shrunk_to_the_federated_one() -> None:
    weights, joint = linear_forecast(SHARED, HISTORY, HORIZON), with_federated_ridge(FIRST, SHARED, OPTIONS)
    for first in (HISTORY, 200, len(FIRST.values) - HORIZON):
        past = (FIRST.values - FIRST.base)[first - HISTORY : first, 0]
        np.testing.assert_allclose(joint.ridge[first, :, 0], past @ weights)
    assert not joint.ridge[: HISTORY - 1].any()
    assert joint.shared.shape == (HISTORY, HORIZON)
    halfway = with_federated_ridge(FIRST, solved(0.5, 300.0), OPTIONS)
    np.testing.assert_array_equal(halfway.ridge, joint_ridge(halfway, FIRST.ridge, OPTIONS))
    assert not np.allclose(halfway.ridge, joint.ridge)


def test_without_a_closed_form_the_own_ridge_forecast_stays() -> None:
    assert with_federated_ridge(FIRST, {}, OPTIONS) is FIRST
    assert with_federated_ridge(FIRST, compute_sums(SECOND, OPTIONS), OPTIONS) is FIRST
    empty = {**SHARED, LAGS: 0 * SHARED[LAGS], PAIRS: 0 * SHARED[PAIRS]}
    np.testing.assert_array_equal(with_federated_ridge(FIRST, empty, OPTIONS).ridge, FIRST.ridge)


def test_sums_of_other_variables_are_refused() -> None:
    with pytest.raises(WireError, match="variables"):
        with_federated_ridge(FIRST, {**SHARED, LAGS: np.zeros((12, 2, 2)), PAIRS: np.ones(12)}, OPTIONS)


@pytest.mark.parametrize("hours", [1, HISTORY - 1, HISTORY, HISTORY + 1])
def test_a_short_series_does_not_keep_other_sensors_from_the_federated_ridge(hours: int) -> None:
    long, short = sensor(0), sensor(1)
    short = replace(short, values=short.values[:hours], observed=short.observed[:hours])
    learner, alone = (learner_of(CONFIG, MEASURES, series) for series in ([long, short], [long]))
    request = TrainRequest(1, "", world(CONFIG), statics=SHARED)
    np.testing.assert_array_equal(learner.batch(request)["ridge"][: len(long.values)], alone.batch(request)["ridge"])
    assert learner.evaluate(world(CONFIG), SHARED, "test") == alone.evaluate(world(CONFIG), SHARED, "test")


def test_forecasts_start_from_the_federated_ridge_and_the_baseline_does_not() -> None:
    learner, model = learner_of(CONFIG, MEASURES, [sensor(0)]), world(CONFIG)
    joint, request = with_federated_ridge(FIRST, SHARED, OPTIONS), TrainRequest(1, "", model, statics=SHARED)
    np.testing.assert_allclose(learner.batch(request)["ridge"], joint.ridge.astype(np.float32))
    np.testing.assert_allclose(learner.batch(TrainRequest(1, "", model))["ridge"], FIRST.ridge.astype(np.float32))
    _, places = FIRST.targets(FIRST.test, HORIZON)
    expected = FIRST.error(FIRST.profile[places] + joint.ridge[FIRST.test], places)
    assert learner.evaluate(model, SHARED, "test")[0]["mse"] == pytest.approx(expected, rel=1e-5)
    assert learner.baselines("test", SHARED) == learner.baselines("test", {})


def test_the_papers_model_has_no_ridge() -> None:
    learner = learner_of(road_config("fedavg", model="paper"), MEASURES, [sensor(0)])
    assert "ridge" not in learner.batch(TrainRequest(1, "", {}, statics=SHARED))


def test_forecasts_beyond_the_series_use_the_federated_ridge() -> None:
    learner, model = learner_of(CONFIG, MEASURES, [sensor(0)]), world(CONFIG)
    made = forecast(learner, learner.sensors[0], model, HORIZON, SHARED)
    whole = prepare(sensor(0), MEASURES, OPTIONS, residual=True, whole=True)
    usual, joint = (whole.scaler.scale(a)[:, 0] for a in (made.profile, made.student))
    shared = (whole.values - whole.base)[-HISTORY:, 0] @ linear_forecast(SHARED, HISTORY, HORIZON)
    np.testing.assert_allclose(joint - usual, shared, atol=1e-5)
