"""Gaussian mechanism: distribution of its noise."""

import numpy as np
from scipy.stats import kstest, norm

from common.privacy.mechanisms import Gaussian


def test_gaussian_noise_has_its_distribution() -> None:
    noise = Gaussian(0.5, 1.0).release(np.zeros(50_000), np.random.default_rng(1))
    assert kstest(noise, norm(scale=2.0).cdf).pvalue > 1e-3
    assert Gaussian(0.5, 1.0).noise == 2.0
