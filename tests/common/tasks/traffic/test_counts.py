"""Sums over lags and their linear forecast, against least squares and by hand."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from common.arrays import Arrays
from common.errors import WireError
from common.tasks.traffic.counts import LAGS, PAIRS, check_lags, lag_sums, linear_forecast
from common.tasks.traffic.task import TASK
from common.tasks.traffic.vocabulary import SensorVariables

H, P = 4, 3
ALL = np.ones(4000, bool)


def autoregressive(length: int, variables: int = 1, seed: int = 0) -> np.ndarray:
    """Return an autoregressive series; of two variables the second follows the first."""
    rng, values = np.random.default_rng(seed), np.zeros((length, variables))
    for t in range(1, length):
        values[t] = 0.8 * values[t - 1, ::-1] + rng.normal(size=variables)
    return values


def test_the_sums_by_hand() -> None:
    d, usable = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]), np.array([True, True, False, True])
    sums = lag_sums(np.tile(d, (2, 1)), np.tile(usable, 2), 3)
    two = np.tile(d, (2, 1)) * np.tile(usable, 2)[:, None]
    for lag in range(3):
        np.testing.assert_allclose(sums[LAGS][lag], sum(np.outer(two[t], two[t + lag]) for t in range(8 - lag)))
    assert sums[PAIRS].tolist() == [6, 3, 3]


def test_few_readings_give_zeros() -> None:
    d = autoregressive(40)
    assert lag_sums(d, np.ones(40, bool), 20)[PAIRS].any()
    assert not lag_sums(d, np.arange(40) > 0, 20)[PAIRS].any()


@pytest.mark.parametrize("variables", [1, 2])
def test_its_weights_are_those_of_least_squares_on_a_long_series(variables: int) -> None:
    d = autoregressive(4000, variables)
    spans = sliding_window_view(d, H + P, axis=0)
    x, y = spans[..., :H].reshape(len(spans), -1), spans[..., H:].reshape(len(spans), -1)
    weights = linear_forecast(lag_sums(d, ALL, H + P), H, P)
    assert weights.shape == (H * variables, P * variables)
    np.testing.assert_allclose(weights, np.linalg.lstsq(x, y, rcond=None)[0], atol=0.03)


def test_an_autoregressive_series_is_forecast_from_its_last_reading_alone() -> None:
    weights = linear_forecast(lag_sums(autoregressive(200_000), np.ones(200_000, bool), H + P), H, P)
    np.testing.assert_allclose(weights[-1], [0.8, 0.64, 0.512], atol=0.03)
    np.testing.assert_allclose(weights[:-1], 0, atol=0.03)


def test_the_task_adds_sums_of_clients() -> None:
    vocabulary, a, b = SensorVariables(variables=("volume",)), autoregressive(300), autoregressive(300, seed=1)
    parts = [lag_sums(series, ALL[:300], H + P) for series in (a, b)]
    total = TASK.add_counts(TASK.add_counts({}, parts[0], vocabulary), parts[1], vocabulary)
    np.testing.assert_allclose(total[LAGS], parts[0][LAGS] + parts[1][LAGS])
    assert total[PAIRS][0] == 600


@pytest.mark.parametrize("sums", [np.zeros((300, 1)), np.full((300, 1), 0.0)])
def test_residuals_of_zero_make_no_forecast(sums: np.ndarray) -> None:
    assert linear_forecast(lag_sums(sums, ALL[:300], H + P), H, P).size == 0


def test_too_few_lags_make_no_forecast() -> None:
    assert linear_forecast(lag_sums(autoregressive(300), ALL[:300], H + P - 1), H, P).size == 0


@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (lambda s: {LAGS: s[LAGS]}, "not sums over lags"),
        (lambda s: s | {LAGS: s[LAGS].astype(np.float32)}, "not sums over lags"),
        (lambda s: s | {LAGS: np.zeros((7, 2, 2))}, "do not have 1 variables"),
        (lambda s: s | {PAIRS: s[PAIRS][:-1]}, "do not have 1 variables"),
        (lambda s: s | {PAIRS: -s[PAIRS]}, "number of pairs is negative"),
        (lambda s: s | {LAGS: s[LAGS] * np.nan}, "non-finite"),
    ],
)
def test_other_arrays_are_refused(spoil: Callable[[Arrays], Arrays], match: str) -> None:
    with pytest.raises(WireError, match=match):
        check_lags(spoil(lag_sums(autoregressive(300), ALL[:300], H + P)), 1)


def test_sums_of_another_number_of_lags_are_refused() -> None:
    vocabulary, d = SensorVariables(variables=("volume",)), autoregressive(300)
    with pytest.raises(WireError):
        TASK.add_counts(lag_sums(d, ALL[:300], H + P), lag_sums(d, ALL[:300], H), vocabulary)
