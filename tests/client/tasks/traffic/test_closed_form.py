"""Closed form at a sensor: shrunk weights, errors by choice, the client alone, an exported network."""

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from client.tasks.traffic.baseline import Windows, complete_windows, shrunk_weights
from client.tasks.traffic.inference import forecast, forecast_by
from client.tasks.traffic.learner import TrafficLearner
from client.tasks.traffic.sensor import choice_errors, with_federated_ridge
from client.training.alone import measure_alone
from common.arrays import Arrays, Floats
from common.tasks.traffic import shared_ridge
from common.tasks.traffic.autocovariances import NOISE, linear_forecast
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.shared_ridge import CHOICE, CHOICES
from deploy.tasks.spec import TrainedRun
from deploy.tasks.traffic.model_service import export
from tests.support.build import learner_of
from tests.support.sensors import HISTORY, HORIZON, MEASURES, road_config, sensor, world

CONFIG = road_config("ridge", tasks__traffic__validation_share=0.2)
OPTIONS = TrafficOptions(history=HISTORY, horizon=HORIZON, validation_share=0.2)
LEARNERS = [cast(TrafficLearner, learner_of(CONFIG, MEASURES, [sensor(k)])) for k in range(3)]


def solution(learners: list[TrafficLearner]) -> Arrays:
    """Return what the sums of these clients give."""
    solved = shared_ridge.sizes(MEASURES, OPTIONS, False)
    while CHOICE not in solved:
        parts = [learner.statistics(solved) for learner in learners]
        sums = {name: np.sum([part[name].astype(np.float64) for part in parts], axis=0) for name in parts[0]}
        solved = shared_ridge.solve(solved, sums, 0.0)
    return solved


def windows_of(learner: TrafficLearner) -> tuple[Windows, np.ndarray]:
    """Return the windows of a client's only sensor, and the first targets of the training windows."""
    [one] = learner.sensors
    return Windows(one.inputs - one.base, HISTORY, HORIZON), complete_windows(one.usable, OPTIONS)


@pytest.mark.parametrize("penalty", [1.0, 300.0])
def test_shrunk_weights_are_a_regression_on_further_rows(penalty: float) -> None:
    windows, train = windows_of(LEARNERS[0])
    shared: Floats = np.random.default_rng(0).normal(size=(HISTORY, HORIZON))
    [(own, toward)] = shrunk_weights(windows, train, shared, [penalty])
    for share in (0.0, 0.5, 1.0):
        x = np.vstack([windows.past(train), np.sqrt(penalty) * np.eye(HISTORY)])
        y = np.vstack([windows.targets(train), np.sqrt(penalty) * share * shared])
        np.testing.assert_allclose(own + share * toward, np.linalg.lstsq(x, y, rcond=None)[0], atol=1e-9)


def test_without_windows_or_under_an_infinite_penalty_the_weights_are_the_shared_ones() -> None:
    windows, train = windows_of(LEARNERS[0])
    shared: Floats = np.random.default_rng(0).normal(size=(HISTORY, HORIZON))
    for first, penalty in ((train, np.inf), (train[:0], 30.0), (train[:0], np.inf)):
        [(own, toward)] = shrunk_weights(windows, first, shared, [penalty])
        assert not own.any()
        np.testing.assert_allclose(toward, shared)


def test_errors_by_choice_are_those_of_the_forecasts_on_validation_data() -> None:
    [one] = LEARNERS[0].sensors
    solved = solution(LEARNERS)
    errors = choice_errors(one, linear_forecast(solved, HISTORY, HORIZON), OPTIONS)
    assert errors is not None
    for k in (0, 20, len(CHOICES) - 1):
        joint = with_federated_ridge(one, {**solved, CHOICE: np.array(CHOICES[k])}, OPTIONS)
        _, places = one.targets(one.validation, HORIZON)
        assert errors[k] == pytest.approx(one.error(one.profile[places] + joint.ridge[one.validation], places))
    assert choice_errors(replace(one, validation=one.validation[:0]), np.zeros((0, 0)), OPTIONS) is None


def test_clients_leave_themselves_out_of_the_sum_by_which_they_choose() -> None:
    solved = solution(LEARNERS)
    others = solution(LEARNERS[1:])
    errors = choice_errors(LEARNERS[0].sensors[0], linear_forecast(others, HISTORY, HORIZON), OPTIONS)
    sent = LEARNERS[0].statistics({name: a for name, a in solved.items() if name != CHOICE})[shared_ridge.ERRORS]
    np.testing.assert_allclose(sent[:-1], errors, rtol=1e-5)


def test_alone_a_client_has_its_own_ridge_regression() -> None:
    share, penalty = solution(LEARNERS[:1])[CHOICE].tolist()
    assert share == 0
    assert penalty in shared_ridge.PENALTIES
    windows, train = windows_of(LEARNERS[0])
    [(own, _)] = shrunk_weights(windows, train, np.zeros((HISTORY, HORIZON)), [penalty])
    [one] = LEARNERS[0].sensors
    _, places = one.targets(one.test, HORIZON)
    expected = one.error(one.profile[places] + windows.shaped(windows.past(one.test) @ own), places)
    measured = measure_alone(CONFIG, MEASURES, {"client-0": LEARNERS[0]}, "test")["client-0"]
    assert measured.units == [pytest.approx(expected, rel=1e-5)]


def test_under_noise_a_sensor_chooses_by_its_own_validation_data() -> None:
    [one] = LEARNERS[0].sensors
    sums = {name: a for name, a in solution(LEARNERS[1:]).items() if name != CHOICE}
    noised = {**sums, NOISE: np.array([1e-6])}
    errors = choice_errors(one, linear_forecast(sums, HISTORY, HORIZON, 1e-6), OPTIONS)
    assert errors is not None
    assert with_federated_ridge(one, noised, OPTIONS).choice == shared_ridge.best_choice(errors)
    without = replace(one, validation=one.validation[:0])
    assert with_federated_ridge(without, noised, OPTIONS).choice == shared_ridge.MIDDLE
    later, model = forecast(LEARNERS[0], one, world(CONFIG), HORIZON, noised), world(CONFIG)
    fixed = {**noised, CHOICE: np.array(shared_ridge.best_choice(errors))}
    np.testing.assert_array_equal(later.student, forecast(LEARNERS[0], one, model, HORIZON, fixed).student)


def test_sums_that_noise_drowns_leave_the_own_ridge() -> None:
    [one] = LEARNERS[0].sensors
    sums = {name: a for name, a in solution(LEARNERS[1:]).items() if name != CHOICE}
    joint = with_federated_ridge(one, {**sums, NOISE: np.array([1e9]), CHOICE: np.array([1.0, 300.0])}, OPTIONS)
    windows, train = windows_of(LEARNERS[0])
    [(own, _)] = shrunk_weights(windows, train, np.zeros((HISTORY, HORIZON)), [300.0])
    np.testing.assert_allclose(joint.ridge[one.test], windows.shaped(windows.past(one.test) @ own), atol=1e-6)


def test_an_exported_network_with_its_sums_forecasts_as_the_run_does() -> None:
    solved, model = solution(LEARNERS), world(CONFIG)
    run = SimpleNamespace(config=CONFIG, vocabulary=MEASURES, model={**model, **solved}, name="toy")
    exported = export(cast(TrainedRun, run), None)
    assert exported.statics.keys() == solved.keys()
    series, [one] = sensor(0), LEARNERS[0].sensors

    def network(inputs: Arrays) -> Arrays:
        return np.zeros((len(inputs["history"]), HORIZON, 1), np.float32)  # untrained, as in the run

    served = forecast_by(network, CONFIG, MEASURES, exported.statics, series, HORIZON)
    np.testing.assert_allclose(served.student, forecast(LEARNERS[0], one, model, HORIZON, solved).student, rtol=1e-4)
