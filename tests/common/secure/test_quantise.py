"""Quantised vectors: integer norm, unbiased rounding, signs, fixed point and the way back."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from common.errors import RefusedError
from common.secure.quantisation import (
    SQUARED_ROUNDING,
    centre,
    decode,
    fixed_point,
    fixed_scale,
    integer_clip,
    noise_scale,
    quantise,
)
from tests.support.helpers import EXACT, terms

FLOATS = st.floats(allow_nan=True, allow_infinity=True, width=64)


def _generator() -> np.random.Generator:
    return np.random.default_rng(7)


@settings(max_examples=300, deadline=None)
@given(arrays(np.float64, st.integers(1, 300), elements=FLOATS), st.floats(1e-6, 1e6))
def test_the_squared_norm_never_exceeds_that_of_the_integer_clip(vector: np.ndarray, clip: float) -> None:
    bound = integer_clip(vector.size)
    numbers = quantise(vector, clip, bound, "signed", _generator())
    assert numbers.dtype == np.int64
    assert int(numbers @ numbers) <= bound**2


@settings(deadline=None)
@given(arrays(np.float64, st.integers(1, 300), elements=st.floats(0, 1e300)))
def test_a_positive_vector_stays_positive(vector: np.ndarray) -> None:
    assert quantise(vector, 2.0, integer_clip(vector.size), "positive", _generator()).min() >= 0


def test_a_negative_number_is_refused_where_none_may_be() -> None:
    with pytest.raises(RefusedError, match="not negative"):
        quantise(np.array([1.0, -1.0]), 1.0, 1024, "positive", _generator())


def test_the_mean_of_many_roundings_is_the_vector() -> None:
    vector, generator = np.array([0.3, -0.25, 0.1234, 0.0, 0.001]), _generator()
    drawn = np.array([quantise(vector, 1.0, 1024, "signed", generator) for _ in range(10_000)])
    fraction = vector * 1024 - np.floor(vector * 1024)
    tolerance = 5 * np.sqrt(fraction * (1 - fraction) / 10_000) + 1e-9
    assert (np.abs(drawn.mean(axis=0) - vector * 1024) <= tolerance).all()


@pytest.mark.parametrize("size", [1, 10, 10_000, 1_000_000])
def test_a_vector_at_the_clip_loses_less_than_one_percent(size: int) -> None:
    vector = _generator().standard_normal(size)
    bound = integer_clip(size)
    numbers = quantise(vector * 1e3, 1.0, bound, "signed", _generator())
    direction = vector / np.linalg.norm(vector)
    assert 0.985 < (numbers @ direction) / bound <= 1.001
    assert int(numbers @ numbers) <= bound**2


def test_zeros_and_vectors_that_are_not_finite_become_zeros() -> None:
    for vector in (np.zeros(5), np.array([1.0, math.nan]), np.array([math.inf, 0.0])):
        assert not quantise(vector, 1.0, 1024, "signed", _generator()).any()
        assert not fixed_point(vector, 10).any()


def test_one_huge_number_takes_the_whole_clip() -> None:
    numbers = quantise(np.array([1e300, 1.0, -1.0]), 1.0, 1024, "signed", _generator())
    assert numbers[0] in (1023, 1024)


@pytest.mark.parametrize(("size", "bound"), [(1, 1024), (10_000, 1024), (65_536, 1024), (65_537, 2048), (10**6, 4096)])
def test_the_integer_clip_of_the_specification(size: int, bound: int) -> None:
    assert integer_clip(size) == bound


@given(st.floats(1e-6, 100), st.sampled_from(["signed", "positive"]))
def test_noise_is_the_least_that_keeps_the_cost(rho: float, sign: str) -> None:
    scale = noise_scale(rho, 1024, sign)
    squared = (4 if sign == "signed" else 2) * 1024**2
    largest = Fraction(rho) * (1 - Fraction(1, 10**9))  # rounded costs of a run's rounds stay within its total
    variance, one_less = scale**2 - SQUARED_ROUNDING, (scale - 1) ** 2 - SQUARED_ROUNDING
    assert Fraction(squared, 2 * variance) <= largest
    assert one_less <= 0 or Fraction(squared, 2 * one_less) > largest


def test_the_costs_of_all_rounds_stay_within_their_total() -> None:
    """With Δ² = 2²² and ρ = 1/8 a noise of 4,096 would cost all of it."""
    assert noise_scale(0.125, 1024, "signed") == 4097


@pytest.mark.parametrize("rho", [0.0, -1.0, math.nan, math.inf, 1e-30])
def test_impossible_costs_are_refused(rho: float) -> None:
    with pytest.raises(RefusedError):
        noise_scale(rho, 1024, "signed")


@given(arrays(np.float64, 5, elements=st.floats(-3e6, 3e6)), st.integers(1, 100_000))
def test_fixed_point_is_exact_to_its_unit_and_no_sum_wraps(vector: np.ndarray, most: int) -> None:
    numbers, scale = fixed_point(vector, most), fixed_scale(most)
    assert most * int(np.abs(numbers).max()) <= 2**62
    np.testing.assert_allclose(numbers / scale, np.clip(vector, -(2.0**21), 2.0**21), rtol=0, atol=1 / scale)


def test_fixed_point_of_4096_clients_has_29_fractional_bits() -> None:
    assert fixed_scale(4096) == 2.0**29


@pytest.mark.parametrize("dtype", ["<u4", "<u8"])
def test_centred_numbers_are_the_signed_ones(dtype: str) -> None:
    signed = np.array([0, 1, -1, 5, -(2**31)])
    np.testing.assert_array_equal(centre(signed.astype(dtype)), signed)


def test_a_decoded_sum_is_in_the_units_of_the_clients() -> None:
    vectors = _generator().standard_normal((5, 6)) / 20
    exact, noised = terms(**EXACT), terms()
    total = np.sum([fixed_point(vector, exact.most) for vector in vectors], axis=0).astype("<u8")
    np.testing.assert_allclose(decode(total, exact), vectors.sum(axis=0), rtol=0, atol=1e-6)
    rounded = [quantise(vector, noised.clip, noised.bound, "signed", _generator()) for vector in vectors]
    decoded = decode(np.sum(rounded, axis=0).astype("<u4"), noised)
    np.testing.assert_allclose(decoded, vectors.sum(axis=0), rtol=0, atol=5 * noised.clip / noised.bound)
