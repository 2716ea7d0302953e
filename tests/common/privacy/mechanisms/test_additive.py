"""Mechanisms: unbiased, as noisy as they say, and no more telling than they claim."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta, kstest, laplace, norm

from common.errors import RefusedError
from common.privacy.accounts import Pure, Zcdp
from common.privacy.clipping import Vector
from common.privacy.mechanisms.additive import Gaussian, Laplace, Mechanism, build_mechanism
from common.privacy.mechanisms.privunit import PrivUnit, log_lean
from common.privacy.options import PrivacyOptions
from common.privacy.randomness import fresh_generator

MECHANISMS: list[Mechanism] = [Gaussian(2.0, 1.5), Laplace(4.0, 1.5), PrivUnit(4.0, 1.5, 5)]
WITHIN = np.array([0.3, -0.2, 0.0, 0.1, 0.4])


def released(mechanism: Mechanism, vector: Vector, count: int, normalise: bool = False, seed: int = 0) -> Vector:
    rng = np.random.default_rng(seed)
    return np.stack([mechanism.release(vector, rng, normalise) for _ in range(count)])


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)
@pytest.mark.parametrize("normalise", [False, True])
def test_releases_are_unbiased(mechanism: Mechanism, normalise: bool) -> None:
    length = np.linalg.norm(WITHIN, 1 if isinstance(mechanism, Laplace) else 2)
    exact = WITHIN * (1.5 / length) if normalise or isinstance(mechanism, PrivUnit) else WITHIN
    found = released(mechanism, WITHIN, 40_000, normalise)
    error = found.std(0) / math.sqrt(len(found))
    assert np.all(np.abs(found.mean(0) - exact) < 5 * error)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)
def test_a_zero_vector_is_released_as_noise_around_zero(mechanism: Mechanism) -> None:
    found = released(mechanism, np.zeros(5), 20_000, normalise=True)
    assert np.isfinite(found).all()
    assert np.all(np.abs(found.mean(0)) < 5 * found.std(0) / math.sqrt(len(found)))


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)
def test_what_is_long_is_clipped(mechanism: Mechanism) -> None:
    norm_of = 1 if isinstance(mechanism, Laplace) else 2
    mean = released(mechanism, 1e6 * WITHIN, 40_000).mean(0)
    assert np.linalg.norm(mean, norm_of) == pytest.approx(1.5, rel=0.05)


def test_gaussian_noise_has_its_distribution() -> None:
    noise = Gaussian(0.5, 1.0).release(np.zeros(50_000), np.random.default_rng(1))
    assert kstest(noise, norm(scale=2.0).cdf).pvalue > 1e-3
    assert Gaussian(0.5, 1.0).noise == 2.0


def test_laplace_noise_has_its_distribution() -> None:
    noise = Laplace(0.5, 1.0).release(np.zeros(50_000), np.random.default_rng(1))
    assert kstest(noise, laplace(scale=4.0).cdf).pvalue > 1e-3
    assert Laplace(0.5, 1.0).noise == 4.0


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
        return dimension * math.exp(-2 * log_lean(t, epsilon)) + t * math.exp(-log_lean(t, epsilon))

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


def audited(mechanism: Mechanism, claimed: float, noise: Callable[[], np.random.Generator]) -> float:
    """A lower bound on ε at 95 %: membership of a canary, guessed from ⟨answer, canary⟩ (Clopper-Pearson, δ = 1e-5)."""
    canary, trials, delta = np.array([1.5, 0, 0, 0, 0]), 20_000, 1e-5
    present, absent = (
        np.array([mechanism.release(one, noise(), True)[0] for _ in range(trials)]) for one in (canary, -canary)
    )
    best = 0.0
    for cut in np.quantile(np.concatenate([present, absent]), np.linspace(0.02, 0.98, 25)):
        hits, alarms = int((present > cut).sum()), int((absent > cut).sum())
        low = beta.ppf(0.025, hits, trials - hits + 1) if hits else 0.0
        high = beta.ppf(0.975, alarms + 1, trials - alarms) if alarms < trials else 1.0
        best = max(best, math.log(max(low - delta, 1e-300) / high))
    return best


@pytest.mark.parametrize(
    ("mechanism", "claimed"),
    [
        (Gaussian(Zcdp().total(2, 1e-5), 1.5), 2.0),
        (Laplace(Pure().total(2, 1e-5), 1.5), 2.0),
        (PrivUnit(2.0, 1.5, 5), 2.0),
    ],
    ids=lambda m: getattr(m, "name", ""),
)
def test_an_audit_does_not_refute_the_claim(mechanism: Mechanism, claimed: float) -> None:
    rng = np.random.default_rng(7)
    found = audited(mechanism, claimed, lambda: rng)
    assert 0.2 < found <= claimed


class Silent(np.random.Generator):
    """What a client without noise would draw."""

    def standard_normal(self, *shape: object, **_: object) -> NDArray[np.float64]:  # type: ignore[override]
        return 0.05 * np.asarray(super().standard_normal(*shape))


def test_the_audit_refutes_a_mechanism_that_forgets_its_noise() -> None:
    rng = Silent(np.random.PCG64(7))
    assert audited(Gaussian(Zcdp().total(2, 1e-5), 1.5), 2.0, lambda: rng) > 3 * 2.0


def test_noise_is_new_each_time() -> None:
    draws = [fresh_generator().standard_normal(4).tolist() for _ in range(50)]
    assert len({tuple(d) for d in draws}) == 50
