"""Gaussian differential privacy against what other accountants say of Gaussian noise, and the discrete noise that has it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr

from common.privacy.accounts import Gdp, PrivacyCost, Zcdp, epsilon_of, epsilon_of_gdp, gdp_of, rho_of
from common.privacy.mechanisms import Gaussian
from common.secure.noise import DiscreteGaussian
from common.secure.quantisation import SQUARED_ROUNDING, noise_scale, squared_sensitivity
from tests.common.privacy.test_zcdp import DP_ACCOUNTING
from tests.support.accountants import epsilon_prv

EPSILONS = st.floats(1e-3, 200)
DELTAS = st.floats(1e-12, 0.5)


def delta_of(cost: float, epsilon: float) -> float:
    """Return δ of Balle and Wang (2018), Thm 8, in logarithms."""
    mu = math.sqrt(2 * cost)
    return math.exp(log_ndtr(mu / 2 - epsilon / mu)) - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))


@given(EPSILONS, DELTAS)
def test_a_total_keeps_its_delta_and_leaves_next_to_nothing(epsilon: float, delta: float) -> None:
    total = gdp_of(epsilon, delta)
    assert delta_of(total, epsilon) <= delta < delta_of(total * (1 + 1e-7), epsilon) * (1 + 1e-9)


@given(EPSILONS, DELTAS)
def test_epsilon_and_cost_are_inverse(epsilon: float, delta: float) -> None:
    assert epsilon_of_gdp(gdp_of(epsilon, delta), delta) == pytest.approx(epsilon, rel=1e-9)


@given(EPSILONS, DELTAS)
def test_no_run_gets_less_than_by_zcdp(epsilon: float, delta: float) -> None:
    assert gdp_of(epsilon, delta) > rho_of(epsilon, delta)


@given(st.floats(1e-9, 1e6), DELTAS)
def test_no_ledger_claims_more_than_by_zcdp(cost: float, delta: float) -> None:
    assert epsilon_of_gdp(cost, delta) <= epsilon_of(cost, delta) * (1 + 1e-7) + 1e-12


@pytest.mark.parametrize("epsilon", [1e-300, 1e-6, 1e4, 1e6])
def test_extreme_budgets_have_totals(epsilon: float) -> None:
    assert 0 < gdp_of(epsilon, 1e-5) < math.inf


def test_nothing_spent_is_no_epsilon() -> None:
    assert epsilon_of_gdp(0.0, 1e-5) == 0.0


@pytest.mark.parametrize(("cost", "count", "delta", "by_rdp", "by_pld"), DP_ACCOUNTING)
def test_our_epsilon_is_that_of_accountants_of_the_whole_loss(
    cost: float, count: int, delta: float, by_rdp: float, by_pld: float
) -> None:
    assert epsilon_of_gdp(cost, delta) == pytest.approx(by_pld, rel=1e-4)
    assert epsilon_of_gdp(cost, delta) == pytest.approx(
        epsilon_prv(math.sqrt(count / (2 * cost)), 1.0, count, delta), abs=0.02
    )


def test_noise_for_an_epsilon_falls_by_what_zcdp_leaves() -> None:
    gains = {e: math.sqrt(rho_of(e, 1e-5) / gdp_of(e, 1e-5)) for e in (1, 2, 8)}
    assert gains == pytest.approx({1: 0.922, 2: 0.928, 8: 0.941}, abs=1e-3)


def test_gaussian_noise_costs_the_same_in_both_accounts() -> None:
    cost = Gaussian(0.3, 1.0).privacy_cost
    assert Gdp().charge(cost) == Zcdp().charge(cost) == 0.3
    assert Zcdp().charge(PrivacyCost(zcdp=0.3)) == 0.3


@pytest.mark.parametrize("scale", [4, 10, 300])
@pytest.mark.parametrize("shift", [1, 3, 8])
def test_discrete_noise_is_as_private_as_its_gaussian_cost(scale: int, shift: int) -> None:
    span = np.arange(-40 * scale - shift, 40 * scale + shift + 1)
    weights = np.exp(-(span**2) / (2 * scale**2))
    probability = weights / weights.sum()
    loss = ((span + shift) ** 2 - span**2) / (2 * scale**2)  # of an output, between neighbours that differ by the shift
    cost = shift**2 / (2 * (scale**2 - SQUARED_ROUNDING))
    for epsilon in (0.0, 0.01, 0.1, 0.5, 1.0, 3.0):
        exact = float(probability @ np.maximum(0.0, -np.expm1(epsilon - loss)))
        assert exact <= (delta_of(cost, epsilon) if epsilon else math.erf(math.sqrt(cost / 4))) * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize("variance", [1.0, 100.0])
def test_rounded_gaussian_noise_is_discrete_gaussian_noise(variance: float) -> None:
    squared, x = SQUARED_ROUNDING, np.linspace(-100, 100, 200_001)
    density = np.exp(-(x**2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
    numbers = np.arange(-40, 41)
    normal = sum(np.exp(-((k - x) ** 2) / (2 * squared)) for k in range(-200, 201))
    found = [float((density * np.exp(-((y - x) ** 2) / (2 * squared)) / normal).sum() * (x[1] - x[0])) for y in numbers]
    weights = np.exp(-(numbers**2) / (2 * (variance + squared)))
    assert np.array(found) / found[40] == pytest.approx(weights / weights[40], rel=1e-9, abs=1e-12)


@given(st.floats(1e-6, 50.0), st.sampled_from([1024, 2048, 4096]))
def test_the_noise_of_a_sum_is_the_least_that_its_cost_pays(rho: float, bound: int) -> None:
    scale = noise_scale(rho, bound, "signed")
    assert DiscreteGaussian(bound, "signed", scale).privacy_cost.gdp <= rho
    assert squared_sensitivity(bound, "signed") / (2 * ((scale - 1) ** 2 - SQUARED_ROUNDING)) > rho * (1 - 2e-9)


def test_noise_of_less_than_its_rounding_has_no_finite_cost() -> None:
    assert DiscreteGaussian(1024, "signed", 3).privacy_cost.gdp == math.inf
