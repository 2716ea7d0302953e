"""Traffic in closed form: sums, choice, noise of sums, and what a client refuses."""

import numpy as np
import pytest

from common.arrays import Arrays
from common.errors import WireError
from common.tasks.traffic import shared_ridge
from common.tasks.traffic.autocovariances import CLIENTS, COVARIANCES, LAGS, NOISE, PAIRS
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.vocabulary import SensorVariables

VARIABLES, OPTIONS = SensorVariables(variables=("volume",)), TrafficOptions(history=9, horizon=3)
START = shared_ridge.sizes(VARIABLES, OPTIONS, False)
DECAY = 0.8 ** np.arange(12.0)[:, None, None]


def lag_sums(pairs: float = 100.0) -> Arrays:
    """Return a client's sums over lags, with autocovariances of .8 to the power of the lag."""
    return {LAGS: pairs * DECAY, PAIRS: np.full(12, pairs)}


def test_clients_weigh_the_same_whatever_their_number_of_readings() -> None:
    few, many = (shared_ridge.lag_statistics(START, lag_sums(pairs)) for pairs in (50.0, 5000.0))
    assert set(few) == set(shared_ridge.template(START)) == {COVARIANCES, CLIENTS}
    for name, array in few.items():
        assert array.dtype == np.float32
        np.testing.assert_allclose(many[name], array, rtol=1e-6)


def test_a_client_without_enough_readings_adds_nothing() -> None:
    nothing = shared_ridge.lag_statistics(START, lag_sums(0.0))
    assert not any(array.any() for array in nothing.values())
    assert not shared_ridge.error_statistics([])[shared_ridge.ERRORS].any()


def test_the_choice_has_the_smallest_mean_error() -> None:
    solved = shared_ridge.solve(START, {COVARIANCES: 3 * DECAY, CLIENTS: np.array([3.0])}, 0.0)
    assert shared_ridge.CHOICE not in solved
    np.testing.assert_array_equal(solved[PAIRS], np.full(12, 3.0))
    errors = np.full(len(shared_ridge.CHOICES), 0.5)
    errors[17] = 0.4
    sent = shared_ridge.error_statistics([errors, errors + 1])[shared_ridge.ERRORS]
    assert sent[17] == pytest.approx(0.9)
    chosen = shared_ridge.solve(solved, {shared_ridge.ERRORS: sent.astype(np.float64)}, 0.0)
    assert tuple(chosen[shared_ridge.CHOICE].tolist()) == shared_ridge.CHOICES[17]


def test_equal_errors_choose_the_profile_and_missing_ones_the_middle() -> None:
    zeros = np.zeros(len(shared_ridge.CHOICES))
    assert shared_ridge.best_choice(zeros) == (0.0, np.inf)
    solved = shared_ridge.solve(START, {shared_ridge.ERRORS: np.append(zeros, 0.0)}, 0.0)
    assert tuple(solved[shared_ridge.CHOICE].tolist()) == shared_ridge.MIDDLE


def test_errors_of_a_client_are_bounded() -> None:
    errors = np.full(len(shared_ridge.CHOICES), 1.0)
    errors[:2] = 1e6, np.nan
    sent = shared_ridge.error_statistics([errors])[shared_ridge.ERRORS]
    assert sent[:3].tolist() == [shared_ridge.MOST_ERROR, shared_ridge.MOST_ERROR, 1.0]


def test_a_given_strength_shrinks_to_the_whole_shared_ridge() -> None:
    solved = shared_ridge.solve(START, {COVARIANCES: DECAY, CLIENTS: np.ones(1)}, 200.0)
    assert solved[shared_ridge.CHOICE].tolist() == [1.0, 200.0]


@pytest.mark.parametrize("noise", [0.5, 5.0])
def test_noise_is_estimated_from_the_sums(noise: float) -> None:
    lags = 144
    smooth = 30 * 0.95 ** np.arange(lags)[:, None, None]
    drawn = [np.random.default_rng(seed).normal(0, noise, smooth.shape) for seed in range(20)]
    found = [shared_ridge.estimate_noise({COVARIANCES: smooth + each}) for each in drawn]
    assert np.mean(found) == pytest.approx(noise, rel=0.1)
    assert np.std(found) < 0.2 * noise


def test_sums_with_noise_have_length_one_for_each_client_and_carry_their_noise() -> None:
    start = shared_ridge.sizes(VARIABLES, OPTIONS, True)
    sent = shared_ridge.lag_statistics(start, lag_sums())
    assert np.linalg.norm(sent[COVARIANCES]) == pytest.approx(1)
    assert not sent[CLIENTS].any()
    drawn = np.random.default_rng(0).normal(0, 2, DECAY.shape)
    solved = shared_ridge.solve(start, {COVARIANCES: 20 * DECAY + drawn, CLIENTS: np.array([0.3])}, 0.0)
    assert 0.5 < solved[NOISE].item() < 8


@pytest.mark.parametrize(
    "changed",
    [
        {shared_ridge.SIZES: np.array([2, 12, 0])},
        {shared_ridge.SIZES: np.array([1, 12, 1])},
        {LAGS: DECAY[:5], PAIRS: np.ones(5)},
        {PAIRS: -np.ones(12)},
        {shared_ridge.CHOICE: np.array([0.5])},
        {shared_ridge.CHOICE: np.array([0.5, 0.0])},
        {shared_ridge.CHOICE: np.array([np.nan, 100.0])},
    ],
)
def test_sums_of_another_run_are_refused(changed: Arrays) -> None:
    solved = {**START, LAGS: DECAY, PAIRS: np.ones(12), shared_ridge.CHOICE: np.array([0.5, np.inf])}
    shared_ridge.check(solved, VARIABLES, OPTIONS, noised=False)
    with pytest.raises(WireError):
        shared_ridge.check({**solved, **changed}, VARIABLES, OPTIONS, noised=False)
