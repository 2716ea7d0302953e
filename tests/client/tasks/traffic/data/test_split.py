"""Parts, scaler and windows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.tasks.traffic.data.series import Scaler, Series, split_series
from common.tasks.traffic.options import TrafficOptions

MONDAY = "2024-01-01T00:00"


def series(length: int, start: str = MONDAY, variables: int = 1) -> Series:
    values = np.random.default_rng(length).random((length, variables))
    return Series("a", np.datetime64(start, "m"), values, np.ones((length, variables), bool))


def options(history: int = 120, horizon: int = 24, test: float = 0.1, validation: float = 0.1) -> TrafficOptions:
    return TrafficOptions(history=history, horizon=horizon, test_share=test, validation_share=validation)


@pytest.mark.parametrize(
    ("days", "train", "validation"), [(31, 25, 3), (365, 292, 36), (2_033, 1_626, 204), (112, 90, 11)]
)
def test_parts_begin_at_the_nearest_midnight(days: int, train: int, validation: int) -> None:
    """31 and 365 days as in explore-traffic.md (25/3/3, 292/36/37); 0.8 and 0.9 of the days, rounded."""
    split = split_series(series(24 * days), options())
    assert (split.train_end, split.validation_end) == (24 * train, 24 * (train + validation))


def test_midnight_is_by_the_sensors_clock() -> None:
    """From nine in the evening of day 0: 20 days end at 2,4,... midnights, which lie at 3 + 24 k."""
    split = split_series(series(480, "2024-01-01T21:00"), options())
    assert (split.train_end, split.validation_end) == (24 * 16 + 3, 24 * 18 + 3)
    daily = split_series(series(100), options(7, 1), step=86400)
    assert (daily.train_end, daily.validation_end) == (80, 90)


def test_a_short_series_is_cut_anywhere_and_has_no_windows() -> None:
    split = split_series(series(20), options())
    assert (split.train_end, split.validation_end) == (16, 18)
    assert [len(part) for part in (split.train, split.validation, split.test)] == [0, 0, 0]
    one = split_series(series(1), options())
    assert (one.train_end, one.validation_end, one.scaler.std.tolist()) == (1, 1, [1])


def test_no_window_begins_while_a_variable_is_silent() -> None:
    """What a gap is filled with may depend on the reading that ends it."""
    whole = series(2400, variables=2)
    gap = whole.observed.copy()
    gap[2300:2310, 1] = gap[900:902, 0] = False
    split, sound = split_series(replace(whole, observed=gap), options()), split_series(whole, options())
    assert sorted(set(sound.test) - set(split.test)) == list(range(2301, 2311))
    assert sorted(set(sound.train) - set(split.train)) == [901, 902]


def test_without_validation_that_part_is_training() -> None:
    with_it, without = (split_series(series(2400), options(validation=share)) for share in (0.1, 0))
    assert without.train_end == without.validation_end == with_it.validation_end
    assert len(without.validation) == 0
    assert (without.test == with_it.test).all()


@given(
    st.integers(1, 400),
    st.integers(2, 30),
    st.integers(1, 30),
    st.floats(0.01, 0.99),
    st.floats(0, 0.99),
    st.integers(0, 30),
)
def test_windows_lie_in_their_parts(
    length: int, history: int, horizon: int, test: float, validation: float, hour: int
) -> None:
    horizon = min(horizon, history)
    start = np.datetime64(MONDAY, "m") + 60 * hour
    split = split_series(series(length, str(start)), options(history, horizon, test, validation))
    bounds = (0, split.train_end, split.validation_end, length)
    assert 1 <= split.train_end <= split.validation_end <= length
    parts = (split.train, split.validation, split.test)
    for part, begin, end in zip(parts, bounds[:-1], bounds[1:], strict=True):
        fitting = [t for t in range(history, length) if begin <= t and t + horizon <= end]
        assert part.tolist() == fitting
        assert part.dtype == np.int64


def test_the_scaler_knows_observed_training_readings_only() -> None:
    one = series(2400, variables=3)
    values, observed = one.values.copy(), one.observed.copy()
    observed[5:50, 0] = False
    values[5:50, 0] = 1e6
    observed[:1920, 1] = False
    values[1920:, 2] = 1e6
    split = split_series(Series("a", one.start, values, observed), options())
    kept = np.delete(values[:1920, 0], np.arange(5, 50))
    assert split.train_end == 1920
    expected = [(kept.mean(), kept.std()), *((v.mean(), v.std()) for v in values[:1920, 1:].T)]
    np.testing.assert_allclose(np.stack([split.scaler.mean, split.scaler.std], axis=1), expected, rtol=1e-12)


@pytest.mark.parametrize("value", [0.0, 7.0, 0.1, 1e9])
def test_a_constant_series_is_not_rescaled(value: float) -> None:
    split = split_series(
        Series("a", np.datetime64(MONDAY), np.full((480, 1), value), np.ones((480, 1), bool)), options()
    )
    assert split.scaler.std.tolist() == [1]
    np.testing.assert_allclose(split.scaler.scale(np.full((480, 1), value)), 0, atol=1e-6)


def test_scaling_and_back() -> None:
    scaler = Scaler(np.array([1.0, -2.0]), np.array([2.0, 0.5]))
    assert scaler.scale(np.array([[[3.0, -1.0]]])).tolist() == [[[1, 2]]]
    values = np.random.default_rng(0).random((5, 4, 2))
    np.testing.assert_allclose(scaler.unscale(scaler.scale(values)), values, rtol=1e-12)
