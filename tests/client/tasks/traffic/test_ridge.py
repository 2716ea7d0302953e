"""A sensor's own ridge line against scikit-learn's, and what keeps its past honest."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from client.tasks.traffic.prepare import line_of, prepare
from client.tasks.traffic.ridge import FOLDS, PENALTIES, Windows, ridge_line
from common.tasks.traffic.options import TrafficOptions
from tests.support.sensors import HISTORY, HORIZON, MEASURES, sensor

H, P, PENALTY = 6, 3, 5.0


def drawn(length: int, variables: int, seed: int = 0) -> np.ndarray:
    """Noise that remembers: each reading is mostly the one before."""
    rng, values = np.random.default_rng(seed), np.zeros((length, variables))
    for t in range(1, length):
        values[t] = 0.8 * values[t - 1] + rng.normal(size=variables)
    return values


def flat(values: np.ndarray, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(histories, targets), window by window."""
    return (
        np.array([values[t - H : t].T.ravel() for t in first]),
        np.array([values[t : t + P].T.ravel() for t in first]),
    )


@pytest.mark.parametrize("variables", [1, 2])
def test_windows_to_come_are_forecast_from_the_whole_past(variables: int) -> None:
    values, train = drawn(120, variables), np.arange(H, 80)
    oracle = Ridge(alpha=PENALTY, fit_intercept=False).fit(*flat(values, train))
    line = ridge_line(Windows(values, H, P), train, [PENALTY])
    assert line.shape == (120, P, variables)
    later = np.arange(90, 117)
    expected = oracle.predict(flat(values, later)[0]).reshape(len(later), variables, P).swapaxes(1, 2)
    np.testing.assert_allclose(line[later], expected, atol=1e-9)
    assert not line[:H].any()


def test_a_window_learnt_from_is_forecast_by_those_that_share_no_target_with_its_stretch() -> None:
    values, train = drawn(120, 1), np.arange(H, 80)
    line = ridge_line(Windows(values, H, P), train, [PENALTY])
    for own in np.array_split(train, FOLDS):
        apart = np.array([t for t in train if t + P - 1 < own[0] or t > own[-1] + P - 1])
        oracle = Ridge(alpha=PENALTY, fit_intercept=False).fit(*flat(values, apart))
        np.testing.assert_allclose(line[own, :, 0], oracle.predict(flat(values, own)[0]), atol=1e-9)


def test_the_past_looks_no_more_predictable_than_the_future() -> None:
    """In noise without memory nothing is predictable; in sample, 60 windows explain a good part of it."""
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(20):
        values = rng.normal(size=(400, 1))
        line = ridge_line(Windows(values, H, P), np.arange(H, 66), [0.1])
        past, later = (flat(values, first)[1] - line[first, :, 0] for first in (np.arange(H, 66), np.arange(70, 390)))
        errors.append((np.square(past).mean(), np.square(later).mean()))
    past, later = np.mean(errors, axis=0)
    assert past == pytest.approx(later, rel=0.1)
    assert past > 1.02


def test_windows_with_a_gap_among_their_targets_or_right_before_teach_nothing() -> None:
    values, known = drawn(200, 1), np.ones(200, bool)
    known[50] = known[150:] = False
    options = TrafficOptions(history=H, horizon=P)
    wild = values.copy()
    wild[50] = 0  # as history it counts, so it is the same in both
    line = line_of(wild, known, options)
    learnt = np.array([t for t in range(H, 148) if not t - 1 <= 50 < t + P])
    np.testing.assert_allclose(line, ridge_line(Windows(wild, H, P), learnt, PENALTIES))


@pytest.mark.parametrize("length", [0, 1, H - 1, H, H + P - 1])
def test_too_short_a_past_has_no_line(length: int) -> None:
    line = line_of(drawn(max(length, 1), 1)[:length], np.ones(length, bool), TrafficOptions(history=H, horizon=P))
    assert line.shape == (length, P, 1)
    assert not line.any()


def test_the_paper_s_model_has_none_and_the_default_may_go_without() -> None:
    options = TrafficOptions(history=HISTORY, horizon=HORIZON)
    assert prepare(sensor(0, 20), MEASURES, options, residual=False).line.size == 0
    assert prepare(sensor(0, 20), MEASURES, options.model_copy(update={"ridge": "none"}), residual=True).line.size == 0
    assert prepare(sensor(0, 20), MEASURES, options, residual=True).line.shape == (480, HORIZON, 1)


def test_where_the_past_tells_no_penalty_from_another_there_is_no_line() -> None:
    """Windows that all share targets leave none to forecast them from, so every penalty forecasts nothing."""
    windows, train = Windows(drawn(60, 1), H, P), np.arange(H, H + P)
    for penalties in ([PENALTY, np.inf], [np.inf, PENALTY]):
        assert not ridge_line(windows, train, penalties).any()
    assert ridge_line(windows, train, [PENALTY])[30:].any()


def test_the_penalty_is_the_one_that_forecasts_the_past_from_the_rest_of_it_best() -> None:
    """scikit-learn's error over the same folds is least at the same λ; of pure noise, without a line."""
    values, train = drawn(160, 1), np.arange(H, 130)
    penalties = [0.01, 100.0, 1e6]

    def left_out(penalty: float) -> float:
        error = 0.0
        for own in np.array_split(train, FOLDS):
            apart = np.array([t for t in train if t + P - 1 < own[0] or t > own[-1] + P - 1])
            oracle = Ridge(alpha=penalty, fit_intercept=False).fit(*flat(values, apart))
            error += np.square(flat(values, own)[1] - oracle.predict(flat(values, own)[0])).sum()
        return error

    best = min(penalties, key=left_out)
    windows = Windows(values, H, P)
    np.testing.assert_allclose(ridge_line(windows, train, penalties), ridge_line(windows, train, [best]))
    noise = Windows(np.random.default_rng(3).normal(size=(160, 1)), H, P)
    assert not ridge_line(noise, train, [0.01, np.inf]).any()
