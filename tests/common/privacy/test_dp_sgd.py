"""DP-SGD's cost against Opacus at many orders, dp-accounting, and a direct integral."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from common.errors import RefusedError
from common.privacy.accounts import Rdp, fixed_order
from common.privacy.mechanisms import DpSgd, multiplier_for
from common.privacy.prv import rdp
from tests.support.accountants import epsilon_prv, epsilon_rdp

# dp-accounting 0.6.0: event = PoissonSampledDpEvent(q, GaussianDpEvent(z))
#   rdp.RdpAccountant([order]).compose(event)._rdp[0]
DIVERGENCES = [
    (1.0, 0.5, 4, 1.15070979),
    (1.0, 0.5, 16, 7.26064333),
    (2.0, 0.1, 8, 0.01372543),
    (1.1, 0.01, 32, 8.46941643),
]

#   a.compose(event, steps).get_epsilon(delta) of rdp.RdpAccountant() and pld.PLDAccountant()
EPSILONS = [
    (1.0, 0.5, 10, 1e-5, 11.544491510085827, 10.459927369257201),
    (2.0, 0.5, 90, 1e-5, 14.688195517275915, 13.400269570288288),
    (1.1, 0.01, 1000, 1e-5, 1.7117701662429012, 1.5153702481094293),
    (4.0, 1.0, 30, 1e-6, 7.481114834875133, 7.016788668149608),
]


@pytest.mark.parametrize(("multiplier", "sample", "order", "expected"), DIVERGENCES)
def test_divergences_are_dp_accounting_s(multiplier: float, sample: float, order: int, expected: float) -> None:
    assert rdp(multiplier, sample, 1, order) == pytest.approx(expected, rel=1e-6)
    divergence = DpSgd(multiplier, sample, 7, 0.3).privacy_cost.rdp
    assert divergence
    assert divergence(order) == pytest.approx(7 * expected, rel=1e-6)


@pytest.mark.parametrize(("sample", "order"), [(0.5, 2), (0.1, 5), (0.9, 3)])
def test_a_divergence_is_the_integral_it_stands_for(sample: float, order: int) -> None:
    multiplier = 1.3

    def moment(x: float) -> float:
        without, with_it = norm.logpdf(x, 0, multiplier), norm.logpdf(x, 1, multiplier)
        mixed = np.logaddexp(math.log(1 - sample) + without, math.log(sample) + with_it)
        return float(np.exp(order * mixed + (1 - order) * without))

    expected = math.log(quad(moment, -20, 30, limit=200)[0]) / (order - 1)
    assert rdp(multiplier, sample, 1, order) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("multiplier", "sample", "steps", "delta", "by_rdp", "by_pld"), EPSILONS)
def test_what_a_ledger_claims_is_never_below_another_accountant(
    multiplier: float, sample: float, steps: int, delta: float, by_rdp: float, by_pld: float
) -> None:
    others = (by_rdp, by_pld, epsilon_prv(multiplier, sample, steps, delta))
    for order in (2, 4, 8, 16, 32, 64):
        claimed = Rdp(order).claim(rdp(multiplier, sample, steps, order), delta)
        assert claimed >= max(*others, epsilon_rdp(multiplier, sample, steps, delta))
    assert epsilon_rdp(multiplier, sample, steps, delta) >= by_rdp * (1 - 1e-9)


@given(st.floats(0.05, 50), st.sampled_from([0.01, 0.1, 0.5, 1.0]), st.integers(1, 50), st.sampled_from([2, 4, 24]))
def test_the_multiplier_is_the_least_that_stays_within_the_cost(
    cost: float, sample: float, steps: int, order: int
) -> None:
    multiplier = multiplier_for(cost, sample, steps, order)
    assert rdp(multiplier, sample, steps, order) <= cost
    if multiplier > 0.051:
        assert rdp(multiplier * 0.999, sample, steps, order) > cost


@pytest.mark.parametrize("cost", [0, -1, math.nan, math.inf, 1e-14])
def test_an_impossible_cost_is_refused(cost: float) -> None:
    with pytest.raises(RefusedError, match="privacy"):
        multiplier_for(cost, 0.5, 3, 4)


@pytest.mark.parametrize("fields", [(0, 0.5, 1, 1), (1, 0, 1, 1), (1, 1.5, 1, 1), (1, 0.5, 0, 1), (1, 0.5, 1, np.nan)])
def test_impossible_steps_are_refused(fields: tuple[float, float, int, float]) -> None:
    with pytest.raises(RefusedError, match="privacy"):
        DpSgd(*fields)


@pytest.mark.parametrize("epsilon", [0.1, 1, 3, 10, 50])
def test_the_fixed_order_loses_little_to_the_best_of_all_orders(epsilon: float) -> None:
    """Against the best order known afterwards, for the 90 equal steps that spend the whole budget."""
    order, delta = fixed_order(epsilon, 1e-5), 1e-5
    multiplier = multiplier_for(Rdp(order).total(epsilon, delta), 0.5, 90, order)
    assert 0.65 * epsilon < epsilon_rdp(multiplier, 0.5, 90, delta) <= epsilon
