"""Local ridge baseline against scikit-learn's Ridge, with cross-validated forecasts of the past."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from client.tasks.traffic.baseline import FOLDS, Windows, profile, ridge_forecasts
from client.tasks.traffic.sensor import fit_ridge, prepare
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.shared_ridge import PENALTIES
from tests.support.sensors import HISTORY, HORIZON, MEASURES, sensor

H, P, PENALTY = 6, 3, 5.0


def autoregressive(length: int, variables: int, seed: int = 0) -> np.ndarray:
    """Return an autoregressive series with coefficient 0.8."""
    rng, values = np.random.default_rng(seed), np.zeros((length, variables))
    for t in range(1, length):
        values[t] = 0.8 * values[t - 1] + rng.normal(size=variables)
    return values


def flat(values: np.ndarray, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return histories and targets, window by window."""
    return (
        np.array([values[t - H : t].T.ravel() for t in first]),
        np.array([values[t : t + P].T.ravel() for t in first]),
    )


@pytest.mark.parametrize("variables", [1, 2])
def test_future_windows_are_forecast_from_the_whole_past(variables: int) -> None:
    values, train = autoregressive(120, variables), np.arange(H, 80)
    oracle = Ridge(alpha=PENALTY, fit_intercept=False).fit(*flat(values, train))
    ridge = ridge_forecasts(Windows(values, H, P), train, [PENALTY])
    assert ridge.shape == (120, P, variables)
    later = np.arange(90, 117)
    expected = oracle.predict(flat(values, later)[0]).reshape(len(later), variables, P).swapaxes(1, 2)
    np.testing.assert_allclose(ridge[later], expected, atol=1e-9)
    assert not ridge[:H].any()


def test_a_training_window_is_forecast_by_windows_that_share_no_target_with_its_fold() -> None:
    values, train = autoregressive(120, 1), np.arange(H, 80)
    ridge = ridge_forecasts(Windows(values, H, P), train, [PENALTY])
    for fold in np.array_split(train, FOLDS):
        separate = np.array([t for t in train if t + P - 1 < fold[0] or t > fold[-1] + P - 1])
        oracle = Ridge(alpha=PENALTY, fit_intercept=False).fit(*flat(values, separate))
        np.testing.assert_allclose(ridge[fold, :, 0], oracle.predict(flat(values, fold)[0]), atol=1e-9)


def test_errors_of_the_past_equal_errors_of_the_future() -> None:
    """Check white noise, which is unpredictable but partly explained in sample by 60 windows."""
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(20):
        values = rng.normal(size=(400, 1))
        ridge = ridge_forecasts(Windows(values, H, P), np.arange(H, 66), [0.1])
        past, later = (flat(values, first)[1] - ridge[first, :, 0] for first in (np.arange(H, 66), np.arange(70, 390)))
        errors.append((np.square(past).mean(), np.square(later).mean()))
    past, later = np.mean(errors, axis=0)
    assert past == pytest.approx(later, rel=0.1)
    assert past > 1.02


def test_windows_with_a_gap_in_or_right_before_their_targets_are_left_out() -> None:
    values, usable = autoregressive(200, 1), np.ones(200, bool)
    usable[50] = usable[150:] = False
    options = TrafficOptions(history=H, horizon=P)
    wild = values.copy()
    wild[50] = 0  # a filled gap counts as history, in both
    ridge = fit_ridge(wild, usable, options)
    train = np.array([t for t in range(H, 148) if not t - 1 <= 50 < t + P])
    np.testing.assert_allclose(ridge, ridge_forecasts(Windows(wild, H, P), train, PENALTIES))


@pytest.mark.parametrize("length", [0, 1, H - 1, H, H + P - 1])
def test_a_past_that_is_too_short_has_no_ridge(length: int) -> None:
    ridge = fit_ridge(
        autoregressive(max(length, 1), 1)[:length], np.ones(length, bool), TrafficOptions(history=H, horizon=P)
    )
    assert ridge.shape == (length, P, 1)
    assert not ridge.any()


def test_the_paper_s_model_has_no_ridge_and_the_default_may_have_none() -> None:
    options = TrafficOptions(history=HISTORY, horizon=HORIZON)
    assert prepare(sensor(0, 20), MEASURES, options, residual=False).ridge.size == 0
    assert prepare(sensor(0, 20), MEASURES, options.model_copy(update={"ridge": "none"}), residual=True).ridge.size == 0
    assert prepare(sensor(0, 20), MEASURES, options, residual=True).ridge.shape == (480, HORIZON, 1)


def test_if_all_penalties_have_equal_errors_there_is_no_ridge() -> None:
    """Check windows that all share targets: no window is left for a fold, and all forecasts are zero."""
    windows, train = Windows(autoregressive(60, 1), H, P), np.arange(H, H + P)
    for penalties in ([PENALTY, np.inf], [np.inf, PENALTY]):
        assert not ridge_forecasts(windows, train, penalties).any()
    assert ridge_forecasts(windows, train, [PENALTY])[30:].any()


def test_the_penalty_has_the_lowest_cross_validation_error() -> None:
    """Compare with scikit-learn's errors over the same folds; for white noise the penalty is ∞."""
    values, train = autoregressive(160, 1), np.arange(H, 130)
    penalties = [0.01, 100.0, 1e6]

    def left_out(penalty: float) -> float:
        error = 0.0
        for fold in np.array_split(train, FOLDS):
            separate = np.array([t for t in train if t + P - 1 < fold[0] or t > fold[-1] + P - 1])
            oracle = Ridge(alpha=penalty, fit_intercept=False).fit(*flat(values, separate))
            error += np.square(flat(values, fold)[1] - oracle.predict(flat(values, fold)[0])).sum()
        return error

    best = min(penalties, key=left_out)
    windows = Windows(values, H, P)
    np.testing.assert_allclose(ridge_forecasts(windows, train, penalties), ridge_forecasts(windows, train, [best]))
    white_noise = Windows(np.random.default_rng(3).normal(size=(160, 1)), H, P)
    assert not ridge_forecasts(white_noise, train, [0.01, np.inf]).any()


WEEK = 168


def slow(values: np.ndarray, slots: np.ndarray, usable: np.ndarray, t: int) -> np.ndarray:
    """Return the mean of the slot's other usable readings, else of the hour's, else of all, else 0."""
    is_other = usable.copy()
    is_other[t] = False
    kind = (slots // 24 >= 5) * 24 + slots % 24
    for alike in (is_other & (slots == slots[t]), is_other & (kind == kind[t]), usable):
        if alike.any():
            return np.asarray(values[alike].mean(axis=0))
    return np.zeros(values.shape[1])


def hours(weeks: float, first: int = 0, variables: int = 1) -> tuple[np.ndarray, np.ndarray]:
    slots = (first + np.arange(int(weeks * WEEK))) % WEEK
    return np.random.default_rng(0).normal(size=(len(slots), variables)), slots


@pytest.mark.parametrize(("weeks", "usable_weeks"), [(4.0, 3.0), (3.5, 1.2), (1.5, 1.0), (0.6, 0.3), (0.2, 0.1)])
def test_it_is_the_mean_of_the_other_weeks(weeks: float, usable_weeks: float) -> None:
    values, slots = hours(weeks, first=100, variables=2)
    usable = np.arange(len(slots)) < usable_weeks * WEEK
    usable &= np.random.default_rng(1).random(len(slots)) > 0.1
    weekly = profile(values, slots, usable, WEEK)
    np.testing.assert_allclose(weekly, [slow(values, slots, usable, t) for t in range(len(slots))], atol=1e-12)


def test_a_reading_is_not_part_of_its_own_profile() -> None:
    """Check that one changed reading changes the profile at its slot of other weeks only."""
    values, slots = hours(4)
    usable = np.ones(len(slots), bool)
    changed = values.copy()
    changed[WEEK + 5] += 100
    before, after = profile(values, slots, usable, WEEK), profile(changed, slots, usable, WEEK)
    expected = np.zeros_like(values)
    expected[[5, 2 * WEEK + 5, 3 * WEEK + 5]] = 100 / 3
    np.testing.assert_allclose(after - before, expected, atol=1e-9)


def test_unusable_readings_do_not_count() -> None:
    values, slots = hours(4)
    usable = np.arange(len(slots)) < 3 * WEEK
    later = np.where(usable[:, None], values, 1e6)
    np.testing.assert_array_equal(profile(later, slots, usable, WEEK), profile(values, slots, usable, WEEK))


def test_without_usable_readings_the_profile_is_zero() -> None:
    values, slots = hours(1, variables=2)
    assert not profile(values, slots, np.zeros(len(slots), bool), WEEK).any()


def test_a_single_usable_reading_is_the_whole_profile() -> None:
    values, slots = hours(1)
    usable = np.arange(len(slots)) == 30
    np.testing.assert_array_equal(profile(values, slots, usable, WEEK), np.full_like(values, values[30, 0]))


def test_every_quarter_of_an_hour_has_its_own_slot() -> None:
    """Check that a quarter without other weeks has the mean of the other quarters of its hour."""
    slots = np.arange(4 * 24)
    values, usable = np.arange(96.0)[:, None], np.ones(96, bool)
    assert profile(values, slots, usable, 4 * WEEK)[:4, 0] == pytest.approx([2.0, 5 / 3, 4 / 3, 1.0])
