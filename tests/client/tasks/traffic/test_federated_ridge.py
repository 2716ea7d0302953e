"""The local line and everybody's: what each client adds, and what it starts from."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from client.policy import Policy
from client.tasks.traffic.federated_ridge import own_sums, with_federated_ridge
from client.tasks.traffic.inference import forecast
from client.tasks.traffic.prepare import prepare
from common.arrays import add
from common.errors import ConfigError, WireError
from common.options import Scalar
from common.tasks.traffic.counts import LAGS, PAIRS, SUMS, linear_forecast
from common.tasks.traffic.options import TrafficOptions
from common.wire.messages import TrainRequest
from deploy.simulation import InProcessGrid
from server.run import run
from tests.support.build import learner_of
from tests.support.sensors import HISTORY, HORIZON, MEASURES, road_config, road_grid, rounds_of, sensor, stores, world

OPTIONS = TrafficOptions(history=HISTORY, horizon=HORIZON)
CONFIG = road_config("fedavg", tasks__traffic__count_offset=True)
ONE, TWO = (prepare(sensor(k), MEASURES, OPTIONS, residual=True) for k in (0, 1))
THEIRS = own_sums(TWO, OPTIONS)


def test_the_line_is_half_ones_own_and_half_everybodys() -> None:
    weights, joint = linear_forecast(THEIRS, HISTORY, HORIZON), with_federated_ridge(ONE, THEIRS, OPTIONS)
    for first in (HISTORY, 200, len(ONE.values) - HORIZON):
        past = (ONE.values - ONE.base)[first - HISTORY : first, 0]
        np.testing.assert_allclose(joint.line[first, :, 0], (ONE.line[first, :, 0] + past @ weights) / 2)
    assert not joint.line[: HISTORY - 1].any()
    assert joint.shared.shape == (HISTORY, HORIZON)


def test_without_sums_or_of_nothing_ones_own_line_stays() -> None:
    assert with_federated_ridge(ONE, {}, OPTIONS) is ONE
    np.testing.assert_array_equal(
        with_federated_ridge(ONE, {n: a * 0 for n, a in THEIRS.items()}, OPTIONS).line, ONE.line
    )


def test_sums_of_other_variables_are_refused() -> None:
    with pytest.raises(WireError, match="variables"):
        with_federated_ridge(ONE, {LAGS: np.zeros((12, 2, 2)), PAIRS: np.ones(12)}, OPTIONS)


def test_a_learner_adds_its_sensors_and_takes_itself_out() -> None:
    learner = learner_of(CONFIG, MEASURES, [sensor(0), sensor(1)])
    sent = learner.counts()
    for name, both in add(own_sums(ONE, OPTIONS), THEIRS).items():
        np.testing.assert_allclose(sent[name], both)
    total = add(sent, THEIRS) | {"else": np.ones(1)}
    left = learner.without_own(total, sent)
    np.testing.assert_allclose(left[LAGS], THEIRS[LAGS])
    assert left["else"] == 1
    assert learner.without_own({"else": np.ones(1)}, sent) == {"else": np.ones(1)}


@pytest.mark.parametrize("name", SUMS)
def test_counts_that_came_too_late_are_not_taken_off_the_sums(name: str) -> None:
    """Of as many pairs as one's own or more, with less energy than it; or the other way round."""
    learner = learner_of(CONFIG, MEASURES, [sensor(0)])
    sent = learner.counts()
    sums = {each: a * (0.9 if each == name else 2) for each, a in sent.items()}
    assert learner.without_own(sums, sent) is sums


def test_what_rounding_takes_off_the_sums_is_not_missed() -> None:
    learner = learner_of(CONFIG, MEASURES, [sensor(0)])
    sent = learner.counts()
    rounded = {LAGS: sent[LAGS] * (1 - 1e-15), PAIRS: sent[PAIRS]}
    assert not learner.without_own(rounded, sent)[PAIRS].any()


@pytest.mark.parametrize("hours", [1, HISTORY - 1, HISTORY, HISTORY + 1])
def test_a_short_series_does_not_keep_the_others_from_everybodys_line(hours: int) -> None:
    long, short = sensor(0), sensor(1)
    short = replace(short, values=short.values[:hours], observed=short.observed[:hours])
    learner, alone = (learner_of(CONFIG, MEASURES, series) for series in ([long, short], [long]))
    request = TrainRequest(1, "", world(CONFIG), statics=THEIRS)
    np.testing.assert_array_equal(learner.batch(request)["line"][: len(long.values)], alone.batch(request)["line"])
    assert learner.baselines("test", THEIRS) == alone.baselines("test", THEIRS)


def test_training_and_measuring_start_from_the_joint_line() -> None:
    learner, model = learner_of(CONFIG, MEASURES, [sensor(0)]), world(CONFIG)
    joint, request = with_federated_ridge(ONE, THEIRS, OPTIONS), TrainRequest(1, "", model, statics=THEIRS)
    np.testing.assert_allclose(learner.batch(request)["line"], joint.line.astype(np.float32))
    np.testing.assert_allclose(learner.batch(TrainRequest(1, "", model))["line"], ONE.line.astype(np.float32))
    _, places = ONE.targets(ONE.test, HORIZON)
    expected = ONE.error(ONE.profile[places] + joint.line[ONE.test], places)
    assert learner.baselines("test", THEIRS)[0]["ridge_mse"] == pytest.approx(expected)
    assert learner.evaluate(model, THEIRS, "test")[0]["mse"] == pytest.approx(expected, rel=1e-5)


def test_the_papers_model_starts_from_no_line() -> None:
    learner = learner_of(road_config("fedavg", model="paper"), MEASURES, [sensor(0)])
    assert "line" not in learner.batch(TrainRequest(1, "", {}, statics=THEIRS))
    assert not any(sums.any() for sums in learner.counts().values())  # what nothing uses does not leave


def test_what_nobody_has_seen_is_forecast_from_the_joint_line() -> None:
    learner, model = learner_of(CONFIG, MEASURES, [sensor(0)]), world(CONFIG)
    alone, together = (forecast(learner, learner.sensors[0], model, HORIZON, known) for known in ({}, THEIRS))
    whole = prepare(sensor(0), MEASURES, OPTIONS, residual=True, whole=True)
    usual, own, joint = (whole.scaler.scale(a)[:, 0] for a in (alone.profile, alone.student, together.student))
    shared = (whole.values - whole.base)[-HISTORY:, 0] @ linear_forecast(THEIRS, HISTORY, HORIZON)
    np.testing.assert_allclose(joint - usual, (own - usual + shared) / 2, atol=1e-5)


def test_a_federation_sums_and_says_what_it_starts_from(tmp_path: Path) -> None:
    def measured(folder: Path, **options: Scalar) -> dict[str, float]:
        run(road_grid(stores(2), InProcessGrid, Policy(allow_counts=True)), road_config("fedstl", **options), folder)
        return rounds_of(folder)[-1].metrics

    alone, together = measured(tmp_path / "a"), measured(tmp_path / "b", tasks__traffic__count_offset=True)
    assert together["ridge_mse"] != alone["ridge_mse"]
    assert together["profile_mse"] == alone["profile_mse"]


def test_half_of_a_line_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="ridge=none"):
        road_config("fedavg", tasks__traffic__count_offset=True, tasks__traffic__ridge="none")


def test_nothing_but_sums_is_given() -> None:
    assert set(learner_of(CONFIG, MEASURES, [sensor(0)]).counts()) == set(SUMS)
