"""What a ledger counts in. Each account is a privacy *filter*: spend what you like, in any order, until the total is reached.

The total is fixed before the first release; costs may then depend on everything seen so far. Whatever was spent when it stops,
the guarantee is that of the whole total, (ε, δ).
None of them is an odometer: the ε of what has been spent *so far*, `claim`, is a number to plan with, never a guarantee,
since stopping because of what was seen is only covered by the total (§4.8).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

from common.errors import ConfigError, RefusedError, StateError
from common.privacy.mechanisms.additive import Gaussian, Mechanism
from common.privacy.mechanisms.dp_sgd import DpSgd
from common.privacy.options import PrivacyOptions
from common.privacy.zcdp import epsilon_of, rho_of, rho_of_pure

Charged = Mechanism | DpSgd


class Account(Protocol):
    """A unit of privacy loss whose costs add up."""

    @property
    def name(self) -> str:
        """As ledgers write it; `account_named` reads it."""

    def total(self, epsilon: float, delta: float) -> float:
        """What may be spent under (ε, δ)."""

    def claim(self, spent: float, delta: float) -> float:
        """ε at δ of a total of `spent`, had it been fixed beforehand."""

    def charge(self, mechanism: Charged) -> float:
        """What the mechanism costs here.

        Raises:
            RefusedError: Its loss has no bound in this account.
        """


@dataclass(frozen=True)
class Zcdp:
    """Σρ ≤ ρ(ε, δ); valid at all orders at once (Whitehouse et al. 2023)."""

    name: ClassVar[str] = "zcdp"

    def total(self, epsilon: float, delta: float) -> float:
        """ρ(ε, δ)."""
        return rho_of(epsilon, delta)

    def claim(self, spent: float, delta: float) -> float:
        """ε of Σρ."""
        return epsilon_of(spent, delta)

    def charge(self, mechanism: Charged) -> float:
        """ρ, or ε²/2 of a pure mechanism."""
        if isinstance(mechanism, DpSgd):
            raise RefusedError("privacy: sampled steps have no ρ; this ledger counts in zCDP")
        return mechanism.cost if isinstance(mechanism, Gaussian) else rho_of_pure(mechanism.cost)


@dataclass(frozen=True)
class Pure:
    """Σε ≤ ε, no δ (Rogers et al. 2016)."""

    name: ClassVar[str] = "pure"

    def total(self, epsilon: float, delta: float) -> float:
        """ε."""
        return epsilon

    def claim(self, spent: float, delta: float) -> float:
        """Σε."""
        return spent

    def charge(self, mechanism: Charged) -> float:
        """ε."""
        if isinstance(mechanism, Gaussian | DpSgd):
            raise RefusedError("privacy: Gaussian noise has no pure ε; this ledger counts in pure ε")
        return mechanism.cost


@dataclass(frozen=True)
class Rdp:
    """Σ of Rényi divergences of one order α, fixed beforehand, ≤ ε − L/(α − 1) (Feldman and Zrnic 2021)."""

    order: int

    @property
    def name(self) -> str:
        """`rdp-α`."""
        return f"rdp-{self.order}"

    def total(self, epsilon: float, delta: float) -> float:
        """ε − L/(α − 1), at least 0: what is left after the conversion to (ε, δ) (Mironov 2017, Prop 3)."""
        return max(0.0, epsilon - math.log(1 / delta) / (self.order - 1))

    def claim(self, spent: float, delta: float) -> float:
        """Σ + L/(α − 1)."""
        return spent + math.log(1 / delta) / (self.order - 1)

    def charge(self, mechanism: Charged) -> float:
        """The divergence of order α: αρ of Gaussian noise, at most ε and αε²/2 of a pure mechanism."""
        match mechanism:
            case DpSgd():
                return mechanism.cost(self.order)
            case Gaussian():
                return self.order * mechanism.rho
            case _:
                return min(mechanism.cost, self.order * rho_of_pure(mechanism.cost))


def build_account(options: PrivacyOptions) -> Account:
    """The account in which a run with these options is cheapest.

    Raises:
        ConfigError: ε is too small for the account at that δ.
    """
    if options.unit == "record":
        return Rdp(fixed_order(options.epsilon, options.delta))
    return Zcdp() if options.mechanism == "gaussian" else Pure()


def fixed_order(epsilon: float, delta: float) -> int:
    """α from (ε, δ) alone: the integer at which Gaussian-like steps, of divergence proportional to α, get furthest.

    Raises:
        ConfigError: No order up to 1,000 leaves anything to spend.
    """
    best = max(range(2, 1001), key=lambda order: Rdp(order).total(epsilon, delta) / order)
    if Rdp(best).total(epsilon, delta) == 0:
        raise ConfigError(f"privacy: ε={epsilon} at δ={delta} leaves nothing to spend on DP-SGD; take a larger ε or δ")
    return best


def account_named(name: str) -> Account:
    """The account that a ledger wrote down.

    Raises:
        StateError: It is none of ours.
    """
    kind, _, order = name.partition("-")
    if kind == "rdp" and order.isdecimal() and int(order) > 1:
        return Rdp(int(order))
    known: dict[str, Account] = {"zcdp": Zcdp(), "pure": Pure()}
    if name not in known:
        raise StateError(f"'{name}' is no account of this version of fedloom; use the version that wrote it")
    return known[name]


def portion(total: float, parts: int) -> float:
    """The largest cost that can be spent `parts` times: total/parts, rounded so that the sum stays within the total."""
    share = total / parts
    return share if Fraction(share) * parts <= Fraction(total) else math.nextafter(share, 0)
