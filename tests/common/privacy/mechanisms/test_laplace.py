"""Laplace mechanism: distribution of its noise."""

import numpy as np
import pytest
from scipy.stats import kstest, laplace

from common.privacy.mechanisms import Laplace


def test_laplace_noise_has_its_distribution() -> None:
    noise = Laplace(0.5, 1.0).release(np.zeros(50_000), np.random.default_rng(1))
    assert kstest(noise, laplace(scale=4.0).cdf).pvalue > 1e-3
    assert Laplace(0.5, 1.0).noise == 4.0


def test_the_deviation_is_relative_to_vectors_of_equal_entries() -> None:
    """Four equal entries of L1 norm C have the L2 norm C/2."""
    assert Laplace(0.5, 1.0).standard_deviation() == pytest.approx(4 * np.sqrt(2))
    assert Laplace(0.5, 1.0).standard_deviation(4) == pytest.approx(8 * np.sqrt(2))
