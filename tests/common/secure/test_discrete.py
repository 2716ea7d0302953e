"""Exact discrete Gaussian noise against its probability mass."""

import math

import numpy as np
import pytest
from scipy.stats import chisquare, norm

from common.errors import RefusedError
from common.secure.noise import Stream, discrete_gaussian, discrete_laplace

DRAWS = 1_000_000
KEY = bytes(range(32))


def _mass(scale: int) -> tuple[np.ndarray, np.ndarray]:
    """Return integers within 9 scales and their probabilities."""
    support = np.arange(-9 * scale, 9 * scale + 1)
    mass = np.exp(-(support.astype(float) ** 2) / (2 * scale**2))
    return support, mass / mass.sum()


@pytest.mark.parametrize("scale", [1, 3, 50])
def test_counts_of_draws_follow_the_exact_mass(scale: int) -> None:
    support = np.arange(-20 * scale, 20 * scale + 1)
    laplace = support, np.exp(-np.abs(support) / scale) * math.tanh(1 / (2 * scale))
    for draw, (values, mass) in ((discrete_gaussian, _mass(scale)), (discrete_laplace, laplace)):
        drawn = draw(scale, DRAWS, Stream(KEY))
        common = mass * DRAWS >= 10
        observed = np.array([np.count_nonzero(drawn == y) for y in values[common]])
        expected = mass[common] * DRAWS
        result = chisquare([*observed, DRAWS - observed.sum()], [*expected, DRAWS - expected.sum()])
        assert result.pvalue > 1e-3


def test_a_large_scale_is_gaussian_to_the_last_digit_that_a_million_draws_show() -> None:
    scale = 40_000
    drawn = np.sort(discrete_gaussian(scale, DRAWS, Stream(KEY)))
    above, position = norm.cdf((drawn + 0.5) / scale), np.arange(1, DRAWS + 1) / DRAWS
    assert np.abs(above - position).max() < 1.95 / math.sqrt(DRAWS)  # Kolmogorov–Smirnov at p = .001


def test_a_key_means_one_noise_and_another_key_another() -> None:
    first = discrete_gaussian(700, 70_000, Stream(KEY))
    assert first.dtype == np.int64
    np.testing.assert_array_equal(first, discrete_gaussian(700, 70_000, Stream(KEY)))
    assert np.mean(first == discrete_gaussian(700, 70_000, Stream(bytes(32)))) < 0.01


def test_the_noise_of_version_1_never_changes() -> None:
    assert discrete_gaussian(1000, 6, Stream(KEY)).tolist() == [1814, -1896, 1239, -599, -26, 1306]


@pytest.mark.parametrize("scale", [0, -1, 2**24])
def test_a_scale_out_of_range_is_refused(scale: int) -> None:
    with pytest.raises(RefusedError, match="cannot be drawn"):
        discrete_gaussian(scale, 1, Stream(KEY))


def test_a_scale_that_is_no_integer_is_an_error() -> None:
    with pytest.raises(TypeError):
        discrete_gaussian(2.5, 1, Stream(KEY))  # type: ignore[arg-type]  # the error is the subject


def test_the_largest_scale_does_not_overflow() -> None:
    scale = 2**24 - 1
    drawn = discrete_gaussian(scale, 100_000, Stream(KEY))
    assert abs(drawn.std() / scale - 1) < 0.01
    assert abs(drawn.mean()) < 5 * scale / math.sqrt(drawn.size)


def test_integers_below_a_bound_are_uniform_and_words_beyond_the_last_multiple_are_drawn_again() -> None:
    bound = 3 * 2**62
    drawn = Stream(KEY).below(bound, 50_000)
    assert drawn.max() < bound
    counts = np.bincount((drawn // np.uint64(2**62)).astype(int), minlength=3)
    assert chisquare(counts).pvalue > 1e-3
