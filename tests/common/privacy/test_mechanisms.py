"""Mechanisms: unbiased, as noisy as they say, and no more telling than they claim; PrivUnitG as published."""

import math

import numpy as np
import pytest
from scipy.stats import kstest, laplace, norm

from common.arrays import Floats
from common.errors import RefusedError
from common.privacy.accounts import Mechanism
from common.privacy.mechanisms import Gaussian, Laplace, PrivUnit, build_mechanism, fresh_generator, log_bias
from common.privacy.options import PrivacyOptions

MECHANISMS: list[Mechanism] = [Gaussian(200.0, 1.5), Laplace(40.0, 1.5), PrivUnit(4.0, 1.5, 5)]
"""With little noise, where a mechanism allows it, so that few releases tell a bias."""
WITHIN = np.array([0.3, -0.2, 0.0, 0.1, 0.4])


def released(mechanism: Mechanism, vector: Floats, normalise: bool = False) -> Floats:
    rng = np.random.default_rng(0)
    count = 40_000 if isinstance(mechanism, PrivUnit) else 2_000
    return np.stack([mechanism.release(vector, rng, normalise) for _ in range(count)])


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)
@pytest.mark.parametrize("normalise", [False, True])
def test_releases_are_unbiased(mechanism: Mechanism, normalise: bool) -> None:
    length = np.linalg.norm(WITHIN, 1 if isinstance(mechanism, Laplace) else 2)
    exact = WITHIN * (1.5 / length) if normalise or isinstance(mechanism, PrivUnit) else WITHIN
    found = released(mechanism, WITHIN, normalise)
    error = found.std(0) / math.sqrt(len(found))
    assert np.all(np.abs(found.mean(0) - exact) < 5 * error)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)
def test_a_zero_vector_is_released_as_noise_around_zero(mechanism: Mechanism) -> None:
    found = released(mechanism, np.zeros(5), normalise=True)
    assert np.isfinite(found).all()
    assert np.all(np.abs(found.mean(0)) < 5 * found.std(0) / math.sqrt(len(found)))


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)
def test_what_is_long_is_clipped(mechanism: Mechanism) -> None:
    norm_of = 1 if isinstance(mechanism, Laplace) else 2
    mean = released(mechanism, 1e6 * WITHIN).mean(0)
    assert np.linalg.norm(mean, norm_of) == pytest.approx(1.5, rel=0.05)


@pytest.mark.parametrize("cost", [0.0, -1.0, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["gaussian", "laplace", "privunit"])
def test_a_cost_that_is_no_positive_number_is_refused(name: str, cost: float) -> None:
    options = PrivacyOptions.model_validate({"unit": "client", "mechanism": name})
    with pytest.raises(RefusedError, match="positive number"):
        build_mechanism(options, cost, 3)


def test_the_options_name_the_mechanism() -> None:
    def built(name: str) -> Mechanism:
        return build_mechanism(PrivacyOptions.model_validate({"mechanism": name, "clip": 0.5}), 2.0, 3)

    assert [built(n) for n in ("gaussian", "laplace", "privunit")] == [
        Gaussian(2.0, 0.5),
        Laplace(2.0, 0.5),
        PrivUnit(2.0, 0.5, 3),
    ]
    assert {m.sensitivity for m in map(built, ("gaussian", "laplace", "privunit"))} == {1.0}


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)
def test_nan_is_refused_before_noise_is_drawn(mechanism: Mechanism) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(RefusedError, match="NaN or infinite"):
        mechanism.release(np.array([1.0, np.nan, 0, 0, 0]), rng)
    assert rng.random() == np.random.default_rng(0).random()


def test_noise_is_new_each_time() -> None:
    draws = [fresh_generator().standard_normal(4).tolist() for _ in range(50)]
    assert len({tuple(d) for d in draws}) == 50


def test_noise_has_its_distribution() -> None:
    for mechanism, scale, kind in ((Gaussian(0.5, 1.0), 2.0, norm), (Laplace(0.5, 1.0), 4.0, laplace)):
        drawn = mechanism.release(np.zeros(50_000), np.random.default_rng(1))
        assert kstest(drawn, kind(scale=scale).cdf).pvalue > 1e-3
        assert mechanism.noise == scale


def test_the_deviation_is_relative_to_vectors_of_equal_entries() -> None:
    """Four equal entries of L1 norm C have the L2 norm C/2."""
    assert Laplace(0.5, 1.0).standard_deviation() == pytest.approx(4 * np.sqrt(2))
    assert Laplace(0.5, 1.0).standard_deviation(4) == pytest.approx(8 * np.sqrt(2))


def directions(mechanism: PrivUnit, vector: Floats, count: int) -> Floats:
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
    errors = np.square(directions(mechanism, v, 50_000) - v).sum(1)
    m, t = 1 / mechanism.noise, mechanism.threshold
    assert errors.mean() == pytest.approx(4 / m**2 + t / m - 1, rel=0.03)


def test_privunit_leans_to_its_side_with_probability_p() -> None:
    mechanism, v = PrivUnit(2.0, 1.0, 3), np.array([0, 0, 2.0])
    along = directions(mechanism, v, 50_000)[:, 2] / mechanism.noise
    assert np.mean(along >= mechanism.threshold) == pytest.approx(mechanism.p, abs=0.01)
    upper = along[along >= mechanism.threshold]
    tail = (norm.cdf(upper) - norm.cdf(mechanism.threshold)) / mechanism.q
    assert kstest(tail, "uniform").pvalue > 1e-3
