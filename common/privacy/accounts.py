"""Privacy accounts in which a ledger counts.

Each account is a privacy filter: releases are accepted in any order until a fixed total is reached.
The total is fixed before the first release. Later costs may depend on all earlier outputs.
The guarantee is (ε, δ) of the whole total, however much of it was spent.
No account is an odometer: `claim`, the ε of the amount spent until now, is for planning only.
A stop that depends on released outputs is covered by the total alone (algorithms.md §4.8).
"""

import functools
import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

from common.errors import ConfigError, RefusedError, StateError
from common.privacy.cost import PrivacyCost
from common.privacy.zcdp import epsilon_of, rho_of


class Account(Protocol):
    """Measure of privacy loss whose costs add up."""

    @property
    def name(self) -> str:
        """Name in ledgers; `parse_account` reads it."""

    @property
    def has_delta(self) -> bool:
        """True if the guarantee has a δ above 0."""

    def total(self, epsilon: float, delta: float) -> float:
        """Return the largest sum of costs that (ε, δ) allows."""

    def claim(self, spent: float, delta: float) -> float:
        """Return ε at δ of a total of `spent`, had it been fixed beforehand."""

    def charge(self, cost: PrivacyCost) -> float:
        """Return the cost of a release in this account.

        Raises:
            RefusedError: The cost in this account is not finite, or not stated.
        """


@dataclass(frozen=True)
class Zcdp:
    """Account of zCDP: Σρ ≤ ρ(ε, δ), valid at all orders at once (Whitehouse et al. 2023)."""

    name: ClassVar[str] = "zcdp"
    has_delta: ClassVar[bool] = True

    def total(self, epsilon: float, delta: float) -> float:
        """Return ρ(ε, δ)."""
        return rho_of(epsilon, delta)

    def claim(self, spent: float, delta: float) -> float:
        """Return ε of Σρ."""
        return epsilon_of(spent, delta)

    def charge(self, cost: PrivacyCost) -> float:
        """Return ρ."""
        return _finite(cost.zcdp, self.name)


@dataclass(frozen=True)
class Pure:
    """Account of pure differential privacy: Σε ≤ ε, δ = 0 (Rogers et al. 2016)."""

    name: ClassVar[str] = "pure"
    has_delta: ClassVar[bool] = False

    def total(self, epsilon: float, delta: float) -> float:
        """Return ε."""
        return epsilon

    def claim(self, spent: float, delta: float) -> float:
        """Return Σε."""
        return spent

    def charge(self, cost: PrivacyCost) -> float:
        """Return ε."""
        return _finite(cost.pure, self.name)


@dataclass(frozen=True)
class Rdp:
    """Account of Rényi DP at one fixed order α: Σ divergences ≤ ε − L/(α − 1) (Feldman and Zrnic 2021)."""

    order: int

    has_delta: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """`rdp-α`."""
        return f"rdp-{self.order}"

    def total(self, epsilon: float, delta: float) -> float:
        """Return ε − L/(α − 1), at least 0: the rest after the conversion to (ε, δ) (Mironov 2017, Prop 3)."""
        return max(0.0, epsilon - math.log(1 / delta) / (self.order - 1))

    def claim(self, spent: float, delta: float) -> float:
        """Return Σ + L/(α − 1)."""
        return spent + math.log(1 / delta) / (self.order - 1)

    def charge(self, cost: PrivacyCost) -> float:
        """Return the divergence of order α."""
        return _finite(cost.rdp(self.order) if cost.rdp else math.inf, self.name)


@functools.lru_cache(maxsize=64)
def fixed_order(epsilon: float, delta: float) -> int:
    """Return the order α at which Gaussian-like steps, of divergence proportional to α, get furthest.

    The order depends on (ε, δ) alone, so it is fixed before the first release.

    Raises:
        ConfigError: No order up to 1,000 leaves anything to spend.
    """
    best = max(range(2, 1001), key=lambda order: Rdp(order).total(epsilon, delta) / order)
    if Rdp(best).total(epsilon, delta) == 0:
        raise ConfigError(
            f"privacy: ε = {epsilon} at δ = {delta} leaves nothing to spend on noise for records; set a larger ε or δ"
        )
    return best


def parse_account(name: str) -> Account:
    """Return the account of a name in a ledger.

    Raises:
        StateError: The name is unknown.
    """
    kind, _, order = name.partition("-")
    if kind == "rdp" and order.isdecimal() and int(order) > 1:
        return Rdp(int(order))
    accounts: dict[str, Account] = {"zcdp": Zcdp(), "pure": Pure()}
    if name not in accounts:
        raise StateError(f"unknown privacy account '{name}'; use the version of fedloom that wrote the ledger")
    return accounts[name]


def _finite(cost: float, account: str) -> float:
    """Return the cost, or raise RefusedError if it is not finite."""
    if not math.isfinite(cost):
        raise RefusedError(
            f"this mechanism states no finite cost in the {account} account of the ledger; use a mechanism that does"
        )
    return cost
