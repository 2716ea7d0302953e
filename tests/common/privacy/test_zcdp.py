"""zCDP against published figures and against what other accountants say of Gaussian noise."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.privacy.accounts import epsilon_of, rho_of, rho_of_pure, sigma_of
from tests.support.accountants import closed_epsilon, closed_rho, epsilon_prv, epsilon_rdp

# dp-accounting 0.6.0, at noise multiplier z = √(n / 2ρ):
#   eps = lambda a: a.compose(dp_accounting.GaussianDpEvent(z), n).get_epsilon(delta)
#   eps(rdp.RdpAccountant()), eps(pld.PLDAccountant())
DP_ACCOUNTING = [
    (1.55035522857542, 1, 1e-5, 9.191237814555407, 8.55520090025429),
    (1.55035522857542, 100, 1e-5, 9.191237814555407, 8.55520090025429),
    (0.0208, 10, 1e-6, 0.9191385041732183, 0.8518939263651928),
    (5.0, 20, 1e-5, 19.05359753163139, 17.85658683146691),
]


EPSILONS = st.floats(1e-3, 200)
DELTAS = st.floats(1e-12, 0.5)


def test_the_numbers_of_the_specification() -> None:
    assert rho_of(1, 1e-5) == pytest.approx(0.0306, rel=2e-3)
    gains = {1: 0.825, 2: 0.860, 5: 0.903, 10: 0.933}
    assert {e: math.sqrt(closed_rho(e, 1e-5) / rho_of(e, 1e-5)) for e in gains} == pytest.approx(gains, abs=6e-4)
    assert sigma_of(1.5503552, 2) == pytest.approx(1.136, abs=1e-3)
    assert rho_of_pure(10) == 50


@given(EPSILONS, DELTAS)
def test_epsilon_and_rho_are_inverse(epsilon: float, delta: float) -> None:
    assert epsilon_of(rho_of(epsilon, delta), delta) == pytest.approx(epsilon, rel=1e-11)


@given(EPSILONS, DELTAS)
def test_no_run_gets_less_than_by_the_closed_form_of_earlier_versions(epsilon: float, delta: float) -> None:
    assert rho_of(epsilon, delta) >= closed_rho(epsilon, delta) * (1 - 1e-12)


@given(st.floats(1e-12, 1e6), DELTAS)
def test_no_ledger_claims_more_than_by_the_closed_form_of_earlier_versions(rho: float, delta: float) -> None:
    assert epsilon_of(rho, delta) <= closed_epsilon(rho, delta) * (1 + 1e-12)


@given(st.floats(1e-6, 100), DELTAS, st.floats(1.001, 500))
def test_no_order_gives_a_smaller_epsilon(rho: float, delta: float, order: float) -> None:
    exact = order * rho + (math.log(1 / delta) - math.log(order - 1) + order * math.log1p(-1 / order)) / (order - 1)
    assert epsilon_of(rho, delta) <= max(0.0, exact) * (1 + 1e-9) + 1e-9


def test_nothing_spent_is_no_epsilon() -> None:
    assert epsilon_of(0.0, 1e-5) == 0.0


@given(st.floats(1e-6, 100), st.floats(1e-6, 100))
def test_two_releases_at_half_the_cost_have_together_the_information_of_one(rho: float, sensitivity: float) -> None:
    assert sigma_of(rho / 2, sensitivity) ** 2 / 2 == pytest.approx(sigma_of(rho, sensitivity) ** 2)


@pytest.mark.parametrize(("rho", "count", "delta", "by_rdp", "by_pld"), DP_ACCOUNTING)
def test_our_epsilon_is_between_the_exact_one_and_those_of_whole_orders(
    rho: float, count: int, delta: float, by_rdp: float, by_pld: float
) -> None:
    multiplier = math.sqrt(count / (2 * rho))
    opacus = (epsilon_rdp(multiplier, 1.0, count, delta), epsilon_prv(multiplier, 1.0, count, delta))
    assert by_pld <= epsilon_of(rho, delta) <= by_rdp <= 1.001 * epsilon_of(rho, delta)
    assert opacus[1] <= epsilon_of(rho, delta) <= opacus[0]
