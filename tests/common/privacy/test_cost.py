"""Costs as mechanisms state them, and charges of accounts."""

import math
from typing import get_args

import pytest

from common.errors import RefusedError
from common.privacy.accounts import Account, AccountedMechanism, PrivacyCost, Pure, Rdp, Zcdp, fixed_order
from common.privacy.mechanisms import DP_SGD, VECTOR_MECHANISMS, DpSgd, Gaussian, Laplace, PrivUnit, select_spec
from common.privacy.options import MechanismName, PrivacyOptions, Unit

ACCOUNTS: tuple[Account, ...] = (Zcdp(), Pure(), Rdp(7), Rdp(fixed_order(10, 1e-5)))

# `account.charge(mechanism)` of commit 48d3a75; None: refused.
CHARGES: list[tuple[AccountedMechanism, list[float | None]]] = [
    (Gaussian(0.3, 1.0), [0.3, None, 2.1, 1.2]),
    (Laplace(0.7, 1.0), [0.24499999999999997, 0.7, 0.7, 0.7]),
    (PrivUnit(2.5, 1.0, 9), [3.125, 2.5, 2.5, 2.5]),
    (DpSgd(1.1, 0.5, 3, 1.0), [None, None, 6.27686536590863, 2.569027353209944]),
]


def charged(account: Account, cost: PrivacyCost) -> float | None:
    try:
        return account.charge(cost)
    except RefusedError:
        return None


@pytest.mark.parametrize(("mechanism", "expected"), CHARGES)
def test_mechanisms_are_charged_the_stored_floats(mechanism: AccountedMechanism, expected: list[float | None]) -> None:
    assert [charged(account, mechanism.privacy_cost) for account in ACCOUNTS] == expected


@pytest.mark.parametrize("account", ACCOUNTS, ids=lambda account: account.name)
@pytest.mark.parametrize(
    "cost",
    [
        PrivacyCost(),
        PrivacyCost(math.nan, math.nan, lambda order: math.nan),
        PrivacyCost.of_rdp(lambda order: math.inf),
    ],
)
def test_undeclared_cost_is_refused(account: Account, cost: PrivacyCost) -> None:
    with pytest.raises(RefusedError, match=f"no finite cost in the {account.name} account"):
        account.charge(cost)


def test_a_pure_cost_is_bounded_in_every_account() -> None:
    cost = PrivacyCost.of_pure(0.5)
    assert [account.charge(cost) for account in (Pure(), Zcdp(), Rdp(3), Rdp(100))] == [0.5, 0.125, 0.375, 0.5]


@pytest.mark.parametrize("unit", [unit for unit in get_args(Unit) if unit != "none"])
@pytest.mark.parametrize("name", get_args(MechanismName))
def test_every_option_selects_a_registered_mechanism_that_its_account_can_charge(
    unit: Unit, name: MechanismName
) -> None:
    options = PrivacyOptions(unit=unit, mechanism=name)
    spec = select_spec(options)
    account = spec.account(options)
    mechanism = spec.calibrate(options, 0.5, 4)
    assert (spec is DP_SGD) == (unit == "record")
    assert account.charge(mechanism.privacy_cost) == pytest.approx(0.5)


def test_names_of_options_and_of_registered_mechanisms_agree() -> None:
    assert tuple(spec.name for spec in VECTOR_MECHANISMS) == get_args(MechanismName)
    assert DP_SGD.name not in get_args(MechanismName)
