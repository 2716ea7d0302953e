"""Mathematics of the bandit: scales, Gaussian process, estimates of stage 1, and distributions over arms."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from common.arrays import Floats
from server.planning.bandit import (
    Kernel,
    Observations,
    best_mix,
    confidence,
    identity_scales,
    limit_t0,
    posterior,
    price_bound,
    probabilities,
    select_candidates,
    standardize,
)

COSTS = np.array([1.0, 1.125, 1.25])


def test_stage_1_has_at_most_half_of_the_rounds() -> None:
    assert [limit_t0(5, 5, rounds) for rounds in (100, 60, 59, 24, 12, 3)] == [5, 5, 4, 2, 1, 1]


def test_an_unaffordable_due_arm_is_replaced_by_any_affordable_arm() -> None:
    assert select_candidates({1, 2}, np.array([0, 1])).tolist() == [1]
    assert select_candidates({2}, np.array([0, 1])).tolist() == [0, 1]


def test_m_equals_the_specification() -> None:
    assert confidence(np.zeros(5), 5, 100, 943) == pytest.approx(3.03, abs=0.005)
    residuals = np.array([0.1, -0.2])
    expected = math.sqrt(3 / 2 * 0.05 + 4 * math.log(10 * 7) / 2)
    assert confidence(residuals, 3, 10, 7) == pytest.approx(expected)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(-1, 1), min_size=6, max_size=6), st.floats(0.9, 1.4))
def test_the_best_mix_is_the_optimum_over_corners_and_edges(numbers: list[float], allowance: float) -> None:
    predicted = np.array(numbers).reshape(2, 3)
    best = best_mix(predicted, COSTS, allowance)
    assert best <= predicted.max() + 1e-9
    assert best == pytest.approx(by_corners(predicted, max(allowance, 1.0)), abs=1e-7)


def by_corners(predicted: np.ndarray, allowance: float) -> float:
    """Return the optimum over mixtures of at most two pure choices: one constraint, a product of simplices."""
    pure = [
        (np.mean([predicted[t, a] for t, a in enumerate(arms)]), np.mean(COSTS[list(arms)]))
        for arms in product(range(3), repeat=2)
    ]
    best = max(value for value, cost in pure if cost <= allowance + 1e-12)
    for (v, c), (w, d) in product(pure, repeat=2):
        if c < allowance < d:
            best = max(best, v + (w - v) * (allowance - c) / (d - c))
    return float(best)


def test_a_large_allowance_selects_the_best_arm_of_each_round() -> None:
    predicted = np.array([[0.1, 0.4, 0.2], [-0.5, -0.1, -0.3]])
    assert best_mix(predicted, COSTS, 7.0) == pytest.approx((0.4 - 0.1) / 2)


def test_z_is_equation_10_or_the_cap_and_not_negative() -> None:
    assert price_bound(0.2, 3.0, 0.9, "paper") == pytest.approx(3.2)
    assert price_bound(-2.0, 1.0, 0.9, "paper") == 0
    assert price_bound(0.2, 3.0, 0.9, "cap") == 0.9


def test_standardized_arms_contexts_and_rewards() -> None:
    contexts = np.array([[80.0, 10.0, 0.0], [120.0, 30.0, 0.0]])
    scale = standardize(np.array([0.1, 0.11, 0.125]), contexts, np.array([-0.004, 0.002]))
    inputs = scale.inputs(np.array([0, 1, 2]), np.array([[80.0, 10, 0], [120, 30, 0], [100, 20, 5]]))
    assert inputs == pytest.approx(np.array([[0, 0.8, 0.5, 0], [0.4, 1.2, 1.5, 0], [1, 1, 1, 5]]))
    assert scale.rewards(np.array([-0.004, 0.002, 0.4])) == pytest.approx([-1, 0.5, 1])


def test_one_arm_and_rewards_of_0_cause_no_division_by_0() -> None:
    scale = standardize(np.array([0.1]), np.zeros((2, 1)), np.zeros(2))
    assert scale.inputs(np.array([0]), np.ones((1, 1))).tolist() == [[0, 1]]
    assert scale.rewards(np.array([1e-7, 1.0])) == pytest.approx([0.1, 1])


def test_identity_scales_change_nothing() -> None:
    scale = identity_scales(3, 2)
    assert scale.inputs(np.array([2]), np.array([[40.0, 7.0]])).tolist() == [[2, 40, 7]]
    assert scale.rewards(np.array([-300.0, 0.001])).tolist() == [-300, 0.001]


def test_contexts_of_almost_zero_stay_finite_beside_a_later_one() -> None:
    scale = standardize(np.array([0.1, 0.2]), np.array([[2e-308], [0.0]]), np.ones(2))
    assert scale.inputs(np.array([0]), np.array([[5.0]])).tolist() == [[0.0, 5.0]]


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


values = st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=8).map(np.array)


@given(values, st.floats(0, 1e6))
def test_it_is_a_distribution_with_lower_bounds_for_every_arm(value: np.ndarray, gamma: float) -> None:
    p = probabilities(value, gamma)
    k, best = len(value), int(np.argmax(value))
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert (p > 0).all()
    assert p[best] >= 1 / k - 1e-12
    assert (p >= 1 / (k + 2 * gamma) - 1e-12).all()
    assert p[best] >= p.max() - 1e-12


@given(values)
def test_gamma_0_is_the_uniform_distribution(value: np.ndarray) -> None:
    assert probabilities(value, 0.0) == pytest.approx(np.full(len(value), 1 / len(value)))


def test_a_large_gamma_selects_the_best_arm() -> None:
    assert probabilities(np.array([0.1, 0.5, 0.3]), 1e9) == pytest.approx([0, 1, 0], abs=1e-7)


def test_equations_12_and_13_by_hand() -> None:
    p = probabilities(np.array([0.2, 0.7, 0.6]), 8.5)
    assert p[[0, 2]] == pytest.approx([1 / (3 + 8.5 * 0.5), 1 / (3 + 8.5 * 0.1)])
    assert p[1] == pytest.approx(1 - p[0] - p[2])
