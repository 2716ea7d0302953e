"""Expected counts behind noised sums."""

import numpy as np
import pytest

from common.tasks.rules.counts import LEAST_NOISE, SMOOTHING, Prior, expect, fit_prior

RNG = np.random.default_rng(0)
COUNTS = np.where(RNG.random(4000) < 0.9, 0, RNG.geometric(0.05, 4000)).astype(np.float32)
NOISE = 4.0
NOISED = (COUNTS + RNG.normal(0, NOISE, COUNTS.size)).astype(np.float32)


def test_expectations_by_hand() -> None:
    """Check two counts, 0 and 2, whose likelihoods at y = 2 with deviation 1 are e⁻² and 1."""
    prior = Prior(np.array([0.0, 2.0]), np.array([0.75, 0.25]))
    share = 0.25 / (0.25 + 0.75 * np.exp(-2))
    found = expect(np.array([2.0], np.float32), prior, 1.0)
    assert found.count[0] == pytest.approx(2 * share)
    assert found.logarithm[0] == pytest.approx(share * np.log(2 + SMOOTHING) + (1 - share) * np.log(SMOOTHING))


def test_the_fitted_prior_has_the_share_of_empty_cells_and_the_mean() -> None:
    prior = fit_prior(NOISED.tobytes(), NOISE)
    assert prior.weights.sum() == pytest.approx(1)
    assert prior.weights[prior.grid < 2].sum() == pytest.approx(0.9, abs=0.05)
    assert prior.weights @ prior.grid == pytest.approx(COUNTS.mean(), abs=0.2)


def test_expectations_are_nearer_to_the_counts_than_noised_ones_above_zero() -> None:
    found = expect(NOISED, fit_prior(NOISED.tobytes(), NOISE), NOISE)
    plain = np.maximum(NOISED, 0)
    assert np.mean((found.count - COUNTS) ** 2) < 0.5 * np.mean((plain - COUNTS) ** 2)
    truth = np.log(COUNTS + SMOOTHING)
    assert np.mean((found.logarithm - truth) ** 2) < 0.5 * np.mean((np.log(plain + SMOOTHING) - truth) ** 2)


def test_counts_with_little_noise_are_taken_as_they_are() -> None:
    noised = np.array([[-1.0, 3.0]], np.float32)
    found = expect(noised, Prior(np.array([0.0]), np.array([1.0])), LEAST_NOISE / 2)
    np.testing.assert_array_equal(found.count, [[0, 3]])
    np.testing.assert_allclose(found.logarithm, np.log([[0.1, 3.1]]))
