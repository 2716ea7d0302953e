"""PrivUnitG: threshold, density ratio and error as published."""

import math

import numpy as np
import pytest
from scipy.stats import kstest, norm

from common.arrays import Floats
from common.privacy.mechanisms import PrivUnit, log_bias


def released(mechanism: PrivUnit, vector: Floats, count: int) -> Floats:
    rng = np.random.default_rng(0)
    return np.stack([mechanism.release(vector, rng) for _ in range(count)])


def test_privunit_has_the_numbers_of_the_exploration() -> None:
    """explore-ratings.md §3: ε = 10, p = .925, q = 5.6e-4, noise .307 a coordinate at d = 1,682."""
    mechanism = PrivUnit(10.0, 1.0, 1682)
    assert (round(mechanism.p, 3), round(mechanism.q, 5), round(mechanism.noise, 3)) == (0.925, 0.00056, 0.307)
    v = np.random.default_rng(0).standard_normal(1682)
    found = mechanism.release(v, np.random.default_rng(1))
    assert (found - v / np.linalg.norm(v)).std() == pytest.approx(0.307, rel=0.1)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2, 10, 60, 700])
@pytest.mark.parametrize("dimension", [1, 2, 50, 10_000])
def test_privunit_s_density_ratio_is_exactly_its_epsilon_and_its_threshold_the_best(
    epsilon: float, dimension: int
) -> None:
    mechanism = PrivUnit(epsilon, 1.0, dimension)
    t, p, q = mechanism.threshold, mechanism.p, mechanism.q
    if epsilon <= 10:
        assert math.log((p / q) / ((1 - p) / (1 - q))) == pytest.approx(epsilon, rel=1e-9)

    def error(t: float) -> float:
        return dimension * math.exp(-2 * log_bias(t, epsilon)) + t * math.exp(-log_bias(t, epsilon))

    assert error(t) <= min(error(other) for other in np.linspace(0, math.sqrt(2 * epsilon) + 3, 400)) * (1 + 1e-6)


def test_privunit_s_error_is_what_the_formula_says() -> None:
    mechanism, v = PrivUnit(3.0, 1.0, 4), np.array([1.0, 0, 0, 0])
    errors = np.square(released(mechanism, v, 50_000) - v).sum(1)
    m, t = 1 / mechanism.noise, mechanism.threshold
    assert errors.mean() == pytest.approx(4 / m**2 + t / m - 1, rel=0.03)


def test_privunit_leans_to_its_side_with_probability_p() -> None:
    mechanism, v = PrivUnit(2.0, 1.0, 3), np.array([0, 0, 2.0])
    along = released(mechanism, v, 50_000)[:, 2] / mechanism.noise
    assert np.mean(along >= mechanism.threshold) == pytest.approx(mechanism.p, abs=0.01)
    upper = along[along >= mechanism.threshold]
    tail = (norm.cdf(upper) - norm.cdf(mechanism.threshold)) / mechanism.q
    assert kstest(tail, "uniform").pvalue > 1e-3
