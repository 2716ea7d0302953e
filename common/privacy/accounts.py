"""Privacy accounts of ledgers, costs of releases, conversions, and the form of mechanisms.

Gaussian noise is counted in Gaussian differential privacy (GDP; Dong, Roth and Su 2019). A release of sensitivity Δ with noise
σ is μ-GDP with μ = Δ/σ, and μ² adds up: no Gaussian noise with the same total is better. The cost here is μ²/2, the ρ of zCDP
of the same release. Conversion is exact: δ = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) (Balle and Wang 2018, Thm 8).

Conversion of zCDP to (ε, δ) by Canonne, Kamath and Steinke (2020), Prop 12, with x = α − 1:
δ ≤ exp(x((1 + x)ρ − ε)) / x · (1 − 1/(1 + x))^(1 + x). Every x > 0 is valid, so an inexact x errs on the safe side.
The best x solves ρx² = L − ln(1 + x), of which one side rises and the other falls.

Each account is a privacy filter: releases are accepted in any order until a fixed total is reached.
The total is fixed before the first release. Later costs may depend on all earlier outputs.
The guarantee is (ε, δ) of the whole total, however much of it was spent.
No account is an odometer: `claim`, the ε of the amount spent until now, is for planning only.
A stop that depends on released outputs is covered by the total alone (algorithms.md §4.8).
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Generic, Literal, Protocol, Self, TypeVar

import numpy as np

from common.arrays import Floats
from common.errors import ConfigError, RefusedError, StateError
from common.privacy.claims import UNBOUNDED
from common.privacy.options import PrivacyOptions

_STEPS = 200
"""Bisections, until neighbouring floats are reached."""


@functools.lru_cache(maxsize=1024)
def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest ρ whose ρ-zCDP gives (ε, δ)-DP."""

    def excess(x: float) -> float:
        return _epsilon(_rho_at(x, delta), delta, x) - epsilon

    x = _root(excess, 1 / delta - 1)
    return (epsilon - _rest(delta, x)) / (1 + x)


@functools.lru_cache(maxsize=1024)
def epsilon_of(rho: float, delta: float) -> float:
    """Return ε of ρ-zCDP at δ; inverse of `rho_of`."""
    if rho == 0:
        return 0.0
    x = _root(lambda x: _rho_at(x, delta) - rho, 1 / delta - 1)
    return max(0.0, _epsilon(rho, delta, x))


def sigma_of(rho: float, sensitivity: float) -> float:
    """Return the noise standard deviation of the Gaussian mechanism for ρ-zCDP: Δ / √(2ρ) (Prop 1.6)."""
    return sensitivity / math.sqrt(2 * rho)


def rho_of_pure(epsilon: float) -> float:
    """Return the ρ of a pure ε-DP mechanism: ε²/2 (Prop 1.4)."""
    return epsilon**2 / 2


def _epsilon(rho: float, delta: float, x: float) -> float:
    """Return ε at order 1 + x."""
    return (1 + x) * rho + _rest(delta, x)


def _rest(delta: float, x: float) -> float:
    """Return the part of ε at order 1 + x that does not depend on ρ."""
    return (math.log(1 / delta) - math.log1p(x)) / x - math.log1p(1 / x)


def _rho_at(x: float, delta: float) -> float:
    """Return the ρ for which order 1 + x is the best; falls with x."""
    return (math.log(1 / delta) - math.log1p(x)) / x / x


def _root(falling: Callable[[float], float], highest: float) -> float:
    """Return where a falling function of x in (0, highest] crosses 0, by bisection of ln x."""
    return math.exp(_bisect(lambda middle: falling(math.exp(middle)) > 0, math.log(1e-12), math.log(highest))[0])


def _bisect(is_low: Callable[[float], bool], low: float, high: float | None = None) -> tuple[float, float]:
    """Return the last number up to which a condition holds, and the next; `high` is found by default."""
    if high is None:
        high = 1.0
        while is_low(high):
            low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if is_low(middle) else (low, middle)
    return low, high


@functools.lru_cache(maxsize=1024)
def gdp_of(epsilon: float, delta: float, rate: float = 0.0) -> float:
    """Return the largest μ²/2 whose μ-GDP gives (ε, δ)-DP, less a margin for rounding.

    Args:
        epsilon: ε.
        delta: δ.
        rate: Probability over μ²/2 with which Gaussian DP may fail.
    """

    def fits(cost: float) -> bool:
        return _delta_of(math.sqrt(2 * cost), epsilon) + rate * cost <= delta

    return _bisect(fits, 0.0)[0] * (1 - _ROUNDING)


@functools.lru_cache(maxsize=1024)
def epsilon_of_gdp(cost: float, delta: float) -> float:
    """Return ε of μ-GDP with μ²/2 = `cost` at δ; inverse of `gdp_of`."""
    mu = math.sqrt(2 * cost / (1 - _ROUNDING))
    if mu == 0 or _delta_of(mu, 0.0) <= delta:
        return 0.0
    return _bisect(lambda epsilon: _delta_of(mu, epsilon) > delta, 0.0)[1]


_ROUNDING = 1e-8
"""Relative share of a total that is left out, for rounding errors of δ."""


def _delta_of(mu: float, epsilon: float) -> float:
    """Return δ of μ-GDP at ε: φ(t)·(R(t) − R(t + μ)) with t = ε/μ − μ/2 and Mills' ratio R = Φ(−·)/φ(·).

    It equals Φ(−t) − e^ε·Φ(−t − μ), since e^ε·φ(t + μ) = φ(t).
    """
    t = epsilon / mu - mu / 2
    density = math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    if t < 0:
        return math.erfc(t / math.sqrt(2)) / 2 - density * _mills(t + mu)
    return density * (_mills(t) - _mills(t + mu))


_FAR = 20.0
"""Point from which on Mills' ratio is that of its asymptotic series."""


def _mills(t: float) -> float:
    """Return Mills' ratio Φ(−t)/φ(t) of t ≥ 0."""
    if t < _FAR:
        return math.erfc(t / math.sqrt(2)) / 2 * math.sqrt(2 * math.pi) * math.exp(t * t / 2)
    total, term = 1.0, 1.0
    for k in range(1, 12):
        term *= -(2 * k - 1) / t**2
        total += term
    return total / t


@dataclass(frozen=True)
class PrivacyCost:
    """Cost of one release in each account; infinity where the mechanism states no finite bound."""

    pure: float = math.inf
    """ε of pure differential privacy."""
    zcdp: float = math.inf
    """ρ of zCDP."""
    rdp: Callable[[int], float] | None = None
    """Order α -> Rényi divergence of that order."""
    gdp: float = math.inf
    """μ²/2 of Gaussian differential privacy."""
    rate: float = 0.0
    """Probability over μ²/2 with which Gaussian differential privacy may fail."""

    @classmethod
    def of_pure(cls, epsilon: float) -> Self:
        """Return the cost of a pure mechanism: ε; ρ = ε²/2; RDP(α) = min(ε, αε²/2)."""
        rho = rho_of_pure(epsilon)
        return cls(epsilon, rho, lambda order: min(epsilon, order * rho))

    @classmethod
    def of_gdp(cls, cost: float) -> Self:
        """Return the cost of a GDP mechanism: μ²/2; ρ = μ²/2; RDP(α) = αρ; no pure ε."""
        return cls(gdp=cost, zcdp=cost, rdp=lambda order: order * cost)

    @classmethod
    def of_plan(cls, cost: float, rate: float) -> Self:
        """Return the cost of releases that are together GDP, but for a probability of `rate`·μ²/2."""
        return cls(gdp=cost, rate=rate)

    @classmethod
    def of_rdp(cls, divergence: Callable[[int], float]) -> Self:
        """Return the cost of a mechanism whose Rényi divergences alone are known."""
        return cls(rdp=divergence)


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
class Gdp:
    """Account of Gaussian differential privacy: Σμ²/2 ≤ μ(ε, δ)²/2.

    Later noise may depend on earlier outputs (fully adaptive composition of Smith and Thakurta 2022, arXiv 2210.17520).
    """

    name: ClassVar[str] = "gdp"
    has_delta: ClassVar[bool] = True

    def total(self, epsilon: float, delta: float) -> float:
        """Return μ(ε, δ)²/2."""
        return gdp_of(epsilon, delta)

    def claim(self, spent: float, delta: float) -> float:
        """Return ε of Σμ²/2."""
        return epsilon_of_gdp(spent, delta)

    def charge(self, cost: PrivacyCost) -> float:
        """Return μ²/2."""
        return _finite(cost.gdp if not cost.rate else math.inf, self.name)


@dataclass(frozen=True)
class PlannedGdp:
    """Account of Gaussian DP in which each release may fail with a probability of `rate`·μ²/2.

    Σμ²/2 ≤ S, where S is the largest number with δ_μ(ε) + rate·S ≤ δ at μ²/2 = S. DP-SGD has that cost if its number of
    steps is fixed before the first one (see `prv`).
    """

    delta: float
    """δ of its runs."""

    has_delta: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """`prv-δ`, after the composition by which plans are charged."""
        return f"prv-{self.delta!r}"

    @property
    def rate(self) -> float:
        """Probability over μ²/2: δ/100."""
        return self.delta / 100

    def total(self, epsilon: float, delta: float) -> float:
        """Return S; without a limit on ε, there is none on the probability either."""
        return gdp_of(epsilon, delta, self.rate if epsilon < UNBOUNDED else 0.0)

    def claim(self, spent: float, delta: float) -> float:
        """Return ε of Σμ²/2; infinite if the probability exceeds δ."""
        left = delta - self.rate * spent
        return epsilon_of_gdp(spent, left) if left > 0 else math.inf

    def charge(self, cost: PrivacyCost) -> float:
        """Return μ²/2."""
        return _finite(cost.gdp if cost.rate <= self.rate else math.inf, self.name)


@dataclass(frozen=True)
class Zcdp:
    """Account of zCDP: Σρ ≤ ρ(ε, δ), valid at all orders at once (Whitehouse et al. 2023).

    Ledgers have it whose first release was before `Gdp`.
    """

    name: ClassVar[str] = "zcdp"
    has_delta: ClassVar[bool] = True

    def total(self, epsilon: float, delta: float) -> float:
        """Return ρ(ε, δ)."""
        return rho_of(epsilon, delta)

    def claim(self, spent: float, delta: float) -> float:
        """Return ε of Σρ."""
        return epsilon_of(spent, delta)

    def charge(self, cost: PrivacyCost) -> float:
        """Return ρ; μ²/2 of a GDP mechanism, which is at least ρ and keeps the run's own total in `Gdp`."""
        return _finite(cost.gdp if math.isfinite(cost.gdp) and not cost.rate else cost.zcdp, self.name)


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
    """Account of Rényi DP at one fixed order α: Σ divergences ≤ ε − rest (Feldman and Zrnic 2021).

    The rest is that of Canonne, Kamath and Steinke (2020), Prop 12, as for zCDP.
    """

    order: int

    has_delta: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """`rdp-α`."""
        return f"rdp-{self.order}"

    def total(self, epsilon: float, delta: float) -> float:
        """Return ε less the rest of the conversion to (ε, δ), at least 0."""
        return max(0.0, epsilon - _rest(delta, self.order - 1))

    def claim(self, spent: float, delta: float) -> float:
        """Return Σ and the rest of the conversion, at least 0."""
        return max(0.0, spent + _rest(delta, self.order - 1))

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
    best = max(range(2, 1001), key=lambda order: (epsilon - math.log(1 / delta) / (order - 1)) / order)
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
    if kind == "prv" and _is_positive(order):
        return PlannedGdp(float(order))
    accounts: dict[str, Account] = {"gdp": Gdp(), "zcdp": Zcdp(), "pure": Pure()}
    if name not in accounts:
        raise StateError(f"unknown privacy account '{name}'; use the version of fedloom that wrote the ledger")
    return accounts[name]


def _is_positive(text: str) -> bool:
    """Return True for the text of a positive number."""
    try:
        return 0 < float(text) < math.inf
    except ValueError:
        return False


def serves(ledger: Account, run: Account) -> bool:
    """Return True if a ledger's account can charge the releases of a run's account.

    An account serves itself. zCDP serves runs in GDP, since both count μ²/2.
    """
    return ledger == run or (ledger == Zcdp() and run == Gdp())


def _finite(cost: float, account: str) -> float:
    """Return the cost, or raise RefusedError if it is not finite."""
    if not math.isfinite(cost):
        raise RefusedError(
            f"this mechanism states no finite cost in the {account} account of the ledger; use a mechanism that does"
        )
    return cost


class AccountedMechanism(Protocol):
    """Mechanism as a ledger records it."""

    @property
    def name(self) -> str:
        """Name in ledgers."""

    @property
    def sensitivity(self) -> float:
        """Largest change of the exact value between neighbours, in the norm that is clipped."""

    @property
    def noise(self) -> float:
        """Noise scale: σ, or Laplace's b."""

    @property
    def privacy_cost(self) -> PrivacyCost:
        """Cost of one release in every account."""


class Mechanism(AccountedMechanism, Protocol):
    """Mechanism that clips one vector and adds noise to it."""

    def standard_deviation(self, entries: int = 1) -> float:
        """Return the noise standard deviation of a coordinate, relative to vectors of L2 norm C.

        Args:
            entries: Number of equal non-zero entries of the vectors, where the norm that is clipped is not L2.
        """

    # The annotation is text, since numpy loads numpy.random (3 MB) on first use and `status` has no use for it.
    def release(self, vector: Floats, rng: "np.random.Generator", normalise: bool = False) -> Floats:
        """Return the clipped vector with noise.

        With `normalise`, shorter vectors are scaled up to the clip norm.

        Raises:
            RefusedError: The vector holds NaN or infinity.
        """


MechanismT = TypeVar("MechanismT", bound=AccountedMechanism, covariant=True)


@dataclass(frozen=True)
class MechanismSpec(Generic[MechanismT]):
    """Registered mechanism; built in only, since the privacy statement vouches for every mechanism."""

    name: str
    """Value of `privacy.mechanism`; for unit `record`, a label."""
    summary: str
    """Text of the privacy statement.

    The field `what` stands for the values that get noise, other fields for options of `[privacy]`.
    """
    account: Callable[[PrivacyOptions], Account]
    """Account in which a run with these options is cheapest; raises ConfigError if ε is too small for it."""
    calibrate: Callable[[PrivacyOptions, float, int], MechanismT]
    """(options, cost, size) -> mechanism of that cost in that account.

    Raises RefusedError for an impossible cost.

    The size is the length of the vector or, for noise in local steps, their number.
    """
    cost_power: Literal[1, 2]
    """Exponent k of cost ∝ noise^−k."""


def check_positive(**amounts: float) -> None:
    """Accept amounts that are positive and finite.

    Raises:
        RefusedError: An amount is zero, negative, NaN or infinite; the first such amount is named.
    """
    for name, amount in amounts.items():
        if not (math.isfinite(amount) and amount > 0):
            raise RefusedError(f"privacy: {name} must be a positive number, not {amount}")
