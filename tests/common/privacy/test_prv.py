"""Noise of planned DP-SGD: no ε of it exceeds the budget, and little of the budget is unused."""

import math
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from opacus.accountants import PRVAccountant
from scipy.integrate import quad
from scipy.stats import norm

from common.errors import RefusedError
from common.privacy.accounts import Gdp, PlannedGdp, PrivacyCost, Rdp, Zcdp, fixed_order, parse_account
from common.privacy.mechanisms import multiplier_for
from common.privacy.prv import AddedRecordLoss, multiplier_of_plan
from tests.support.accountants import epsilon_prv

DELTA = 1e-5
ACCOUNT = PlannedGdp(DELTA)


def planned(epsilon: float, sample: float, steps: int, share: float = 1.0) -> float:
    """Return the noise multiplier of a plan that has a share of the budget."""
    cost = share * ACCOUNT.total(epsilon, DELTA)
    return multiplier_of_plan(cost, ACCOUNT.rate * cost, sample, steps)


@pytest.mark.parametrize(("sample", "steps"), [(0.5, 3), (0.5, 90), (0.1, 60)])
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_a_plan_uses_the_budget_and_has_less_noise_than_the_filter(epsilon: float, sample: float, steps: int) -> None:
    multiplier, order = planned(epsilon, sample, steps), fixed_order(epsilon, DELTA)
    error = 0.01  # of Opacus
    assert 0.94 * epsilon < epsilon_prv(multiplier, sample, steps, DELTA) <= epsilon + error
    by_filter = multiplier_for(Rdp(order).total(epsilon, DELTA), sample, steps, order)
    assert multiplier < 0.96 * by_filter
    assert epsilon_prv(by_filter, sample, steps, DELTA) < 0.95 * epsilon


def test_plans_of_one_ledger_add_up_within_its_budget() -> None:
    shares = ((0.5, 30, 0.3), (0.1, 90, 0.6), (0.5, 1, 0.1))
    accountant = PRVAccountant()
    accountant.history = [(planned(4.0, q, steps, share), q, steps) for q, steps, share in shares]
    with np.errstate(divide="ignore"), warnings.catch_warnings(action="ignore"):
        assert 0.9 * 4.0 < accountant.get_epsilon(DELTA) <= 4.0 + 0.01


def _gap(epsilon: float, density: Callable[[float], float], other: Callable[[float], float]) -> float:
    """Return the integral of (p − e^ε·q)₊."""
    return quad(
        lambda x: max(0.0, density(x) - math.exp(epsilon) * other(x)), -30, 30, limit=500, points=[-3, 0, 1, 4]
    )[0]


@pytest.mark.parametrize(("sample", "cost"), [(0.5, 0.5), (0.1, 0.05)])
def test_one_step_is_gaussian_dp_but_for_the_probability_whether_a_record_is_added_or_removed(
    sample: float, cost: float
) -> None:
    failure, mu = 1e-6, math.sqrt(2 * cost)
    z = multiplier_of_plan(cost, failure, sample, 1)

    def without(x: float) -> float:
        return float(norm.pdf(x, 0, z))

    def with_it(x: float) -> float:
        return (1 - sample) * without(x) + sample * float(norm.pdf(x, 1, z))

    for epsilon in np.linspace(0, 3, 16):
        gaussian = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        for pair in ((with_it, without), (without, with_it)):
            assert _gap(epsilon, *pair) <= failure + (1 - failure) * gaussian + 1e-9


def test_the_loss_of_an_added_record_has_the_distribution_of_draws() -> None:
    q, z = 0.3, 1.2
    x = np.random.default_rng(0).normal(0, z, 200_000)
    drawn = np.sort(-np.log(1 - q + q * np.exp((2 * x - 1) / (2 * z * z))))
    cdf = AddedRecordLoss(q, z).cdf(drawn)
    assert np.abs(cdf - np.arange(1, len(x) + 1) / len(x)).max() < 1.95 / math.sqrt(len(x))
    assert AddedRecordLoss(q, z).cdf(np.array([-math.log(1 - q) + 1e-6])) == 1


def test_all_records_in_each_step_are_the_gaussian_mechanism() -> None:
    assert multiplier_of_plan(2.0, 1e-8, 1.0, 16) == 2.0


@pytest.mark.parametrize("cost", [0, -1, math.nan, math.inf])
def test_an_impossible_cost_is_refused(cost: float) -> None:
    with pytest.raises(RefusedError, match="privacy"):
        multiplier_of_plan(cost, 1e-7, 0.5, 3)


def test_a_plan_is_charged_in_accounts_that_leave_room_for_its_probability() -> None:
    cost = PrivacyCost.of_plan(0.5, ACCOUNT.rate)
    assert ACCOUNT.charge(cost) == PlannedGdp(1e-3).charge(cost) == 0.5
    for account in (PlannedGdp(DELTA / 2), Gdp(), Zcdp(), Rdp(4)):
        with pytest.raises(RefusedError, match="no finite cost"):
            account.charge(cost)
    assert ACCOUNT.charge(PrivacyCost.of_gdp(0.5)) == 0.5
    assert parse_account(ACCOUNT.name) == ACCOUNT


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 60.0])
def test_the_total_leaves_room_for_the_probability(epsilon: float) -> None:
    total = ACCOUNT.total(epsilon, DELTA)
    assert ACCOUNT.claim(total, DELTA) == pytest.approx(epsilon, rel=1e-6)
    assert total < Gdp().total(epsilon, DELTA)
    assert ACCOUNT.rate * total < DELTA
    assert ACCOUNT.claim(2 * DELTA / ACCOUNT.rate, DELTA) == math.inf
