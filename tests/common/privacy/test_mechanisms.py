"""Mechanisms: unbiased, as noisy as they say, and no more telling than they claim."""

import math

import numpy as np
import pytest
from scipy.stats import kstest, laplace, norm

from common.arrays import Floats
from common.errors import RefusedError
from common.privacy.accounts import Mechanism
from common.privacy.mechanisms import Gaussian, Laplace, PrivUnit, build_mechanism, fresh_generator
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


def test_gaussian_noise_has_its_distribution() -> None:
    noise = Gaussian(0.5, 1.0).release(np.zeros(50_000), np.random.default_rng(1))
    assert kstest(noise, norm(scale=2.0).cdf).pvalue > 1e-3
    assert Gaussian(0.5, 1.0).noise == 2.0


def test_laplace_noise_has_its_distribution() -> None:
    noise = Laplace(0.5, 1.0).release(np.zeros(50_000), np.random.default_rng(1))
    assert kstest(noise, laplace(scale=4.0).cdf).pvalue > 1e-3
    assert Laplace(0.5, 1.0).noise == 4.0


def test_the_deviation_is_relative_to_vectors_of_equal_entries() -> None:
    """Four equal entries of L1 norm C have the L2 norm C/2."""
    assert Laplace(0.5, 1.0).standard_deviation() == pytest.approx(4 * np.sqrt(2))
    assert Laplace(0.5, 1.0).standard_deviation(4) == pytest.approx(8 * np.sqrt(2))
