"""Sums over lags and their linear forecast, against least squares and by hand."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from common.arrays import Arrays
from common.errors import WireError
from common.tasks.traffic.autocovariances import (
    CLIENTS,
    COVARIANCES,
    LAGS,
    NOISE,
    PAIRS,
    check_lags,
    covariance_template,
    lag_sums,
    linear_forecast,
    split_noise,
    to_covariances,
    to_sums,
    to_unit,
)

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


HISTORY, HORIZON = 48, 12


def noised_sums(noise: float, clients: int = 100) -> Arrays:
    """Return sums of equal unit vectors of an autoregressive series, as they are opened with noise."""
    lags = HISTORY + HORIZON
    sums = lag_sums(autoregressive(20_000) / 4, np.ones(20_000, bool), lags)
    unit = to_unit(to_covariances(sums, covariance_template(1, lags)))
    exact = clients * unit[COVARIANCES]
    drawn = noise * np.random.default_rng(3).standard_normal(exact.shape)
    return to_sums({COVARIANCES: exact + drawn, CLIENTS: unit[CLIENTS] + noise}, noise)


@pytest.mark.parametrize("variables", [1, 2])
def test_a_unit_vector_gives_the_same_forecast(variables: int) -> None:
    sums = lag_sums(autoregressive(4000, variables), ALL, H + P)
    vector = to_covariances(sums, covariance_template(variables, H + P))
    unit = to_unit(vector)
    assert np.linalg.norm(unit[COVARIANCES]) == pytest.approx(1)
    assert unit[CLIENTS].item() == 0
    weights = [linear_forecast(to_sums({**one, CLIENTS: np.ones(1)}), H, P) for one in (vector, unit)]
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-9)
    silent = to_unit(covariance_template(variables, H + P))
    assert not any(a.any() for a in silent.values())


def test_forecasts_from_noised_sums_fade_to_zero_with_the_noise() -> None:
    """Without the ridge term of the noise, weights grow with it."""
    largest = []
    for noise in (1e-6, 2.0, 8.0, 20.0):
        sums, deviation = split_noise(noised_sums(noise))
        assert deviation == noise
        largest.append(float(np.abs(linear_forecast(sums, HISTORY, HORIZON, deviation)).max()))
    assert largest[0] == pytest.approx(0.8, abs=0.05)
    assert largest == sorted(largest, reverse=True)
    assert largest[-1] < 0.1
    assert np.abs(linear_forecast(noised_sums(20.0), HISTORY, HORIZON)).max() > 2


@pytest.mark.parametrize("noise", [np.array([np.nan]), np.array([-1.0]), np.array([np.inf]), np.zeros(1), np.ones(2)])
def test_a_malformed_noise_is_refused(noise: np.ndarray) -> None:
    with pytest.raises(WireError, match="not one positive number"):
        split_noise({**noised_sums(1.0), NOISE: noise})
