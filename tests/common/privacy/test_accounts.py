"""Accounts: totals, charges, and sums that never exceed them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import ConfigError, RefusedError, StateError
from common.privacy.accounts import Account, Pure, Rdp, Zcdp, account_named, build_account, fixed_order, portion
from common.privacy.mechanisms.additive import Gaussian, Laplace
from common.privacy.mechanisms.dp_sgd import DpSgd
from common.privacy.mechanisms.privunit import PrivUnit
from common.privacy.options import PrivacyOptions

# dp-accounting 0.6.0: eps = lambda a: a.compose(LaplaceDpEvent(1 / epsilon), n).get_epsilon(1e-5)
#   eps(pld.PLDAccountant()), eps(rdp.RdpAccountant())
LAPLACE = [
    (0.1, 10, 0.9899623169856893, 0.9903344791432741),
    (1.0, 3, 2.9999200028000175, 3.0014701522575353),
    (0.5, 20, 9.105543668290194, 9.346256506205988),
]

ACCOUNTS: list[Account] = [Zcdp(), Pure(), Rdp(4), Rdp(25)]


@pytest.mark.parametrize("account", ACCOUNTS)
def test_a_total_that_is_all_spent_claims_its_epsilon(account: Account) -> None:
    assert account.claim(account.total(10, 1e-5), 1e-5) == pytest.approx(10, rel=1e-12)
    assert account_named(account.name) == account


def test_totals_in_closed_form() -> None:
    assert Zcdp().total(10, 1e-5) == pytest.approx(1.5503552)
    assert Pure().total(10, 1e-5) == 10
    assert Rdp(4).total(10, 1e-5) == pytest.approx(10 - math.log(1e5) / 3)
    assert Rdp(2).total(10, 1e-5) == 0, "at α = 2 no ε of 10 can be certified (§4.8)"


def test_what_a_mechanism_costs_in_each_account() -> None:
    gaussian, laplace, privunit = Gaussian(0.3, 1.0), Laplace(0.5, 1.0), PrivUnit(2.0, 1.0, 9)
    assert [Zcdp().charge(m) for m in (gaussian, laplace, privunit)] == [0.3, 0.125, 2.0]
    assert [Pure().charge(m) for m in (laplace, privunit)] == [0.5, 2.0]
    assert [Rdp(4).charge(m) for m in (gaussian, laplace, privunit)] == pytest.approx([1.2, 0.5, 2.0])
    assert Rdp(3).charge(laplace) == pytest.approx(0.375)


@pytest.mark.parametrize(("epsilon", "count", "by_pld", "by_rdp"), LAPLACE)
def test_sums_of_pure_epsilons_are_not_below_other_accountants(
    epsilon: float, count: int, by_pld: float, by_rdp: float
) -> None:
    mechanism = Laplace(epsilon, 1.0)
    assert Pure().claim(count * Pure().charge(mechanism), 1e-5) >= by_pld
    assert Zcdp().claim(count * Zcdp().charge(mechanism), 1e-5) >= max(by_pld, by_rdp)
    assert all(Rdp(a).claim(count * Rdp(a).charge(mechanism), 1e-5) >= max(by_pld, by_rdp) for a in range(2, 64))


@pytest.mark.parametrize(
    ("account", "mechanism"), [(Pure(), Gaussian(1, 1)), (Pure(), DpSgd(1, 0.5, 1, 1)), (Zcdp(), DpSgd(1, 0.5, 1, 1))]
)
def test_a_loss_without_a_bound_in_the_account_is_refused(account: Account, mechanism: Gaussian | DpSgd) -> None:
    with pytest.raises(RefusedError, match="this ledger counts in"):
        account.charge(mechanism)


def test_each_kind_of_run_has_its_account() -> None:
    for mechanism, account in (("gaussian", Zcdp()), ("laplace", Pure()), ("privunit", Pure())):
        assert build_account(PrivacyOptions.model_validate({"unit": "client", "mechanism": mechanism})) == account
    assert build_account(PrivacyOptions(unit="record")) == Rdp(4)


def test_an_epsilon_beyond_any_order_is_a_mistake_in_the_configuration() -> None:
    with pytest.raises(ConfigError, match="leaves nothing to spend"):
        fixed_order(0.01, 1e-5)


@pytest.mark.parametrize("name", ["", "rdp", "rdp-1", "rdp-x", "gdp"])
def test_a_stranger_s_account_is_told(name: str) -> None:
    with pytest.raises(StateError, match="no account of this version"):
        account_named(name)


@given(st.floats(1e-6, 1e6), st.integers(1, 500))
def test_portions_add_up_to_the_total_and_not_more(total: float, parts: int) -> None:
    assert total * (1 - 1e-12) <= math.fsum([portion(total, parts)] * parts) <= total
