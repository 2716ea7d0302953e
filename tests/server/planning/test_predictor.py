"""Gaussian process: equal to scikit-learn's without time decay, and to a dense solve with it."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from common.arrays import Floats
from server.planning.bandit import Kernel, Observations, posterior

RNG = np.random.default_rng(3)
SEEN = Observations(RNG.uniform(0, 1, (30, 3)), RNG.normal(0, 1, 30), np.arange(1.0, 31.0))
QUERIES = RNG.uniform(0, 1, (7, 3))
NEXT = np.full(7, 31.0)


def by_hand(kernel: Kernel, rounds: Floats) -> tuple[Floats, Floats]:
    """Return Eq 4 and 5 entry by entry, with an explicit inverse."""

    def k(x: Floats, i: float, y: Floats, j: float) -> float:
        gap = float(np.sum((x - y) ** 2))
        return float(np.exp(-gap / (2 * kernel.length_scale**2)) * (1 - kernel.omega) ** (abs(i - j) / 2))

    pairs = list(zip(SEEN.inputs, SEEN.rounds, strict=True))
    gram = np.array([[k(x, i, y, j) for y, j in pairs] for x, i in pairs])
    inverse = np.linalg.inv(gram + kernel.sigma**2 * np.eye(30))
    cross = np.array([[k(x, i, q, t) for x, i in pairs] for q, t in zip(QUERIES, rounds, strict=True)])
    return cross @ inverse @ SEEN.rewards, 1 - np.einsum("qn,nm,qm->q", cross, inverse, cross)


@pytest.mark.parametrize(("length_scale", "sigma"), [(0.2, 0.1), (0.7, 0.1), (0.2, 1.0), (3.0, 0.05)])
def test_without_decay_it_equals_scikit_learn_s_regressor(length_scale: float, sigma: float) -> None:
    oracle = GaussianProcessRegressor(RBF(length_scale), alpha=sigma**2, optimizer=None)
    expected, deviation = oracle.fit(SEEN.inputs, SEEN.rewards).predict(QUERIES, return_std=True)
    mean, variance = posterior(Kernel(length_scale, 0.0, sigma), SEEN, QUERIES, NEXT)
    np.testing.assert_allclose(mean, expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(variance, deviation**2, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("omega", [0.0, 0.001, 0.1, 0.9])
def test_with_decay_it_equals_the_dense_solve_of_equation_5(omega: float) -> None:
    kernel, rounds = Kernel(0.5, omega, 0.1), np.arange(25.0, 32.0)
    mean, variance = posterior(kernel, SEEN, QUERIES, rounds)
    expected, expected_variance = by_hand(kernel, rounds)
    np.testing.assert_allclose(mean, expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(variance, expected_variance, rtol=1e-7, atol=1e-10)


def test_one_observation_by_hand() -> None:
    data = Observations(np.array([[0.0]]), np.array([0.5]), np.array([1.0]))
    mean, variance = posterior(Kernel(0.2, 0.19, 0.1), data, np.array([[0.0], [0.2]]), np.array([3.0, 1.0]))
    decayed, apart = 0.81, np.exp(-0.5)  # (1 − ω)^{2/2}; one ℓ away
    assert mean == pytest.approx([decayed * 0.5 / 1.01, apart * 0.5 / 1.01])
    assert variance == pytest.approx([1 - decayed**2 / 1.01, 1 - apart**2 / 1.01])


def test_repeated_inputs_with_a_tiny_observation_error_are_solved() -> None:
    data = Observations(np.zeros((5, 2)), np.full(5, 0.3), np.arange(1.0, 6.0))
    mean, variance = posterior(Kernel(0.2, 0.0, 1e-12), data, np.zeros((1, 2)), np.array([6.0]))
    assert mean == pytest.approx([0.3], abs=1e-6)
    assert 0 <= variance[0] < 1e-6


def test_arguments_are_not_changed() -> None:
    before = [SEEN.inputs.copy(), SEEN.rewards.copy(), QUERIES.copy()]
    posterior(Kernel(0.2, 0.001, 0.1), SEEN, QUERIES, NEXT)
    assert all(np.array_equal(a, b) for a, b in zip(before, [SEEN.inputs, SEEN.rewards, QUERIES], strict=True))
