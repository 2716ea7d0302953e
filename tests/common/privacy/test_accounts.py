"""Accounts: totals, charges, and sums that never exceed them."""

import math

import pytest

from common.errors import ConfigError, StateError
from common.privacy.accounts import Account, Gdp, Pure, Rdp, Zcdp, fixed_order, parse_account
from common.privacy.mechanisms import Laplace, build_account
from common.privacy.options import PrivacyOptions

# dp-accounting 0.6.0: eps = lambda a: a.compose(LaplaceDpEvent(1 / epsilon), n).get_epsilon(1e-5)
#   eps(pld.PLDAccountant()), eps(rdp.RdpAccountant())
LAPLACE = [
    (0.1, 10, 0.9899623169856893, 0.9903344791432741),
    (1.0, 3, 2.9999200028000175, 3.0014701522575353),
    (0.5, 20, 9.105543668290194, 9.346256506205988),
]

ACCOUNTS: list[Account] = [Gdp(), Zcdp(), Pure(), Rdp(4), Rdp(25)]


@pytest.mark.parametrize("account", ACCOUNTS)
def test_a_total_that_is_all_spent_claims_its_epsilon(account: Account) -> None:
    assert account.claim(account.total(10, 1e-5), 1e-5) == pytest.approx(10, rel=1e-12)
    assert parse_account(account.name) == account


def test_totals_in_closed_form() -> None:
    assert Zcdp().total(10, 1e-5) == pytest.approx(1.7826957)
    assert Gdp().total(10, 1e-5) == pytest.approx(2.0008913)
    assert Pure().total(10, 1e-5) == 10
    assert Rdp(4).total(10, 1e-5) == pytest.approx(10 - math.log(1e5 / 4) / 3 - math.log(3 / 4))
    assert Rdp(2).total(10, 1e-5) == 0, "at α = 2 no ε of 10 can be certified (§4.8)"


@pytest.mark.parametrize(("epsilon", "count", "by_pld", "by_rdp"), LAPLACE)
def test_sums_of_pure_epsilons_are_not_below_other_accountants(
    epsilon: float, count: int, by_pld: float, by_rdp: float
) -> None:
    cost = Laplace(epsilon, 1.0).privacy_cost
    assert Pure().claim(count * Pure().charge(cost), 1e-5) >= by_pld
    assert Zcdp().claim(count * Zcdp().charge(cost), 1e-5) >= max(by_pld, by_rdp)
    assert all(Rdp(a).claim(count * Rdp(a).charge(cost), 1e-5) >= max(by_pld, by_rdp) for a in range(2, 64))


def test_each_kind_of_run_has_its_account() -> None:
    for mechanism, account in (("gaussian", Gdp()), ("laplace", Pure()), ("privunit", Pure())):
        assert build_account(PrivacyOptions.model_validate({"unit": "client", "mechanism": mechanism})) == account
    assert build_account(PrivacyOptions(unit="record")) == Rdp(4)


def test_an_epsilon_beyond_any_order_is_a_mistake_in_the_configuration() -> None:
    with pytest.raises(ConfigError, match="leaves nothing to spend"):
        fixed_order(0.001, 1e-5)


@pytest.mark.parametrize("name", ["", "rdp", "rdp-1", "rdp-x", "gdp-1", "prv", "prv-x", "prv-0"])
def test_an_unknown_account_is_an_error(name: str) -> None:
    with pytest.raises(StateError, match="unknown privacy account"):
        parse_account(name)
