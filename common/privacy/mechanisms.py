"""Built-in mechanisms of privacy: Gaussian, Laplace, PrivUnitG (algorithms.md §4.8), DP-SGD.

Gaussian and Laplace noise is exact, on a grid of integers (`common.privacy.grid`). PrivUnitG and DP-SGD draw in floats, whose
numbers are not evenly spaced: the set of possible outputs depends slightly on the private vector (Mironov 2012).
Claims name this limit: the guarantee is that of real-valued noise.
Philox passes public tests of randomness but is not a certified cipher; each release takes a new key.

Opacus and SciPy are imported inside the functions that need them: the imports take seconds, and most runs do not need them.
"""

import functools
import math
import secrets
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from common.arrays import Floats
from common.errors import RefusedError
from common.privacy.accounts import (
    Account,
    AccountedMechanism,
    Gdp,
    Mechanism,
    MechanismSpec,
    PlannedGdp,
    PrivacyCost,
    Pure,
    Rdp,
    check_positive,
    fixed_order,
    sigma_of,
)
from common.privacy.grid import release_gaussian, release_laplace
from common.privacy.options import PrivacyOptions
from common.privacy.prv import MIN_MULTIPLIER, multiplier_of_plan, rdp
from common.privacy.vectors import clip
from common.secure.noise import DISCRETE_GAUSSIAN


def fresh_generator() -> np.random.Generator:
    """Return a new generator for one release, keyed with 256 bits of the operating system's entropy."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(secrets.randbits(256))))


class _Clipped:
    """Mechanism that clips one vector to norm C; neighbours replace it by any other (replace-one)."""

    clip: float

    @property
    def sensitivity(self) -> float:
        """Sensitivity 2C, in the norm that is clipped."""
        return 2 * self.clip


@dataclass(frozen=True)
class Gaussian(_Clipped):
    """Gaussian mechanism: L2 clip to C, then discrete N(0, σ²) on every coordinate; μ-GDP with μ²/2 = ρ.

    It is unbiased for vectors within the clip.
    """

    rho: float
    clip: float

    name: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        check_positive(rho=self.rho, clip=self.clip)

    @property
    def privacy_cost(self) -> PrivacyCost:
        """Cost μ²/2 of GDP."""
        return PrivacyCost.of_gdp(self.rho)

    @property
    def noise(self) -> float:
        """Standard deviation σ = 2C / √(2ρ)."""
        return sigma_of(self.rho, self.sensitivity)

    def standard_deviation(self, entries: int = 1) -> float:
        """Return σ."""
        return self.noise

    def release(self, vector: Floats, rng: np.random.Generator, normalise: bool = False) -> Floats:
        """Return the clipped vector with noise.

        Raises:
            RefusedError: The vector holds NaN or infinity.
        """
        return release_gaussian(clip(vector, self.clip, 2, normalise), self.clip, self.noise, rng)


GAUSSIAN = MechanismSpec(
    name=Gaussian.name,
    summary="Gaussian noise on {what}, as one vector of Euclidean norm at most {clip:g}",
    account=lambda options: Gdp(),
    calibrate=lambda options, rho, size: Gaussian(rho, options.clip),
    cost_power=2,
)


@dataclass(frozen=True)
class Laplace(_Clipped):
    """Laplace mechanism: L1 clip of the whole vector to C, then discrete Laplace(b) on each coordinate.

    It is pure ε-DP, and unbiased for vectors within the clip.
    """

    epsilon: float
    clip: float

    name: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon, clip=self.clip)

    @property
    def privacy_cost(self) -> PrivacyCost:
        """Cost ε of pure DP."""
        return PrivacyCost.of_pure(self.epsilon)

    @property
    def noise(self) -> float:
        """Scale b = 2C / ε; the variance is 2b²."""
        return self.sensitivity / self.epsilon

    def standard_deviation(self, entries: int = 1) -> float:
        """Return √2·b·√entries: a vector of that many equal entries and L1 norm C has the L2 norm C/√entries."""
        return self.noise * math.sqrt(2 * entries)

    def release(self, vector: Floats, rng: np.random.Generator, normalise: bool = False) -> Floats:
        """Return the clipped vector with noise.

        Raises:
            RefusedError: The vector holds NaN or infinity.
        """
        return release_laplace(clip(vector, self.clip, 1, normalise), self.clip, self.noise, rng)


LAPLACE = MechanismSpec(
    name=Laplace.name,
    summary="Laplace noise on {what}, as one vector of absolute sum at most {clip:g}",
    account=lambda options: Pure(),
    calibrate=lambda options, epsilon, size: Laplace(epsilon, options.clip),
    cost_power=1,
)


@dataclass(frozen=True)
class PrivUnit(_Clipped):
    """PrivUnitG mechanism: a Gaussian vector that is biased towards the direction v of the private vector.

    V ~ N(0, I) given ⟨V, v⟩ ≥ t with probability p, given ⟨V, v⟩ < t otherwise; q = P(⟨V, v⟩ ≥ t). The density of an
    outcome differs between two directions by at most (p/q) / ((1 − p)/(1 − q)), which is made e^ε exactly. C·V/m is an
    unbiased estimate of C·v, where m = E⟨V, v⟩. Only the direction is sent: lengths are always C.
    """

    epsilon: float
    clip: float
    dimension: int

    name: ClassVar[str] = "privunit"

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon, clip=self.clip, dimension=self.dimension)

    @property
    def privacy_cost(self) -> PrivacyCost:
        """Cost ε of pure DP."""
        return PrivacyCost.of_pure(self.epsilon)

    @property
    def noise(self) -> float:
        """Standard deviation C/m of a coordinate orthogonal to v."""
        return self.clip * math.exp(-log_bias(self.threshold, self.epsilon))

    @property
    def threshold(self) -> float:
        """Threshold t of least mean squared error."""
        return threshold(self.epsilon, self.dimension)

    @property
    def p(self) -> float:
        """Probability of an outcome on v's side: e^ε q / (1 − q + e^ε q)."""
        t = self.threshold
        return math.exp(_log_cdf(-t) - np.logaddexp(_log_cdf(-t), _log_cdf(t) - self.epsilon))

    @property
    def q(self) -> float:
        """Same probability for a direction that is independent of the vector: P(N ≥ t)."""
        return math.exp(_log_cdf(-self.threshold))

    def standard_deviation(self, entries: int = 1) -> float:
        """Return C/m."""
        return self.noise

    def release(self, vector: Floats, rng: np.random.Generator, normalise: bool = True) -> Floats:
        """Return an estimate of C times the vector's direction; `normalise` has no effect.

        A zero vector has no direction: a uniformly random one is taken. Its estimate has mean zero and the guarantee
        holds.

        Raises:
            RefusedError: The vector holds NaN or infinity.
        """
        v = clip(vector, 1.0, 2, normalise=True)
        v = v if v.any() else clip(rng.standard_normal(v.size), 1.0, 2, normalise=True)
        v /= np.linalg.norm(v)
        around = rng.standard_normal(v.size)
        along = self._along(1 - rng.random(2))
        return (around + (along - around @ v) * v) * self.noise

    def _along(self, u: Floats) -> float:
        """Return ⟨V, v⟩ from two uniform numbers on (0, 1]: one for the side of t, one for the quantile."""
        from scipy.special import ndtri_exp

        t = self.threshold
        if u[0] <= self.p:
            return -float(ndtri_exp(math.log(u[1]) + _log_cdf(-t)))
        return float(ndtri_exp(math.log(u[1]) + _log_cdf(t)))


def _log_cdf(x: float) -> float:
    """Return ln Φ(x)."""
    from scipy.special import log_ndtr

    return float(log_ndtr(x))


def log_bias(t: float, epsilon: float) -> float:
    """Return ln m, m = φ(t)(p/q − (1 − p)/(1 − q)) = φ(t)(1 − e^−ε) / (q + (1 − q)e^−ε); q may be tiny."""
    log_density = -(t**2 + math.log(2 * math.pi)) / 2
    return float(log_density + math.log(-math.expm1(-epsilon)) - np.logaddexp(_log_cdf(-t), _log_cdf(t) - epsilon))


@functools.lru_cache(maxsize=256)
def threshold(epsilon: float, dimension: int) -> float:
    """Return the t of least mean squared error E‖V/m − v‖² = d/m² + t/m − 1."""
    from scipy.optimize import minimize_scalar

    def error(t: float) -> float:
        scale = math.exp(-log_bias(t, epsilon))
        return dimension * scale**2 + t * scale

    return float(minimize_scalar(error, bounds=(0.0, math.sqrt(2 * epsilon) + 3), method="bounded").x)


PRIVUNIT = MechanismSpec(
    name=PrivUnit.name,
    summary="PrivUnitG on the direction of {what}, as one vector",
    account=lambda options: Pure(),
    calibrate=lambda options, epsilon, size: PrivUnit(epsilon, options.clip, size),
    cost_power=1,
)


MAX_MULTIPLIER = 1e6
"""Largest noise multiplier of the search."""


@dataclass(frozen=True)
class DpSgd:
    """DP-SGD of `steps` steps: Poisson sampling, gradients clipped to C, N(0, (zC)²) on their sum.

    For unit `record`. It is the Poisson-subsampled Gaussian mechanism (Mironov, Talwar and Zhang 2019), accounted by Opacus.
    Neighbours add or remove one record, so the sum's sensitivity is C.
    """

    multiplier: float
    """Noise multiplier z: the noise's standard deviation over the clip norm."""
    sample: float
    """Sampling probability q."""
    steps: int
    clip: float

    def __post_init__(self) -> None:
        check_positive(multiplier=self.multiplier, sample=self.sample, steps=self.steps, clip=self.clip)
        if self.sample > 1:
            raise RefusedError(f"privacy: sample must be a probability, not {self.sample}")

    @property
    def name(self) -> str:
        """Name in ledgers, with q and the number of steps, on which the cost depends."""
        return f"dp-sgd q={self.sample!r} steps={self.steps}"

    @property
    def sensitivity(self) -> float:
        """L2 sensitivity C of one step's sum of gradients."""
        return self.clip

    @property
    def noise(self) -> float:
        """Standard deviation zC on one step's sum of gradients."""
        return self.multiplier * self.clip

    @property
    def privacy_cost(self) -> PrivacyCost:
        """Rényi divergences of all steps together; sampled steps have no finite ρ and no pure ε."""
        return PrivacyCost.of_rdp(functools.partial(rdp, self.multiplier, self.sample, self.steps))


@dataclass(frozen=True)
class DpSgdPlan(DpSgd):
    """DP-SGD of a fixed number of releases of `steps` steps with one noise multiplier, charged at once.

    Its cost holds for any part of the releases, and for any stop.
    """

    releases: int
    cost: float
    """μ²/2 of all releases together."""
    rate: float
    """Probability over μ²/2 with which Gaussian DP may fail."""

    @property
    def name(self) -> str:
        """Name in ledgers; `releases_of` reads the number of releases."""
        return f"{super().name} releases={self.releases}"

    @property
    def privacy_cost(self) -> PrivacyCost:
        """Cost μ²/2 of GDP, but for the probability."""
        return PrivacyCost.of_plan(self.cost, self.rate)


def releases_of(name: str) -> int:
    """Return the number of releases of a plan, from its name in a ledger."""
    return int(name.rpartition("releases=")[2])


def plan_steps(options: PrivacyOptions, cost: float, steps: int, releases: int) -> DpSgdPlan:
    """Return DP-SGD of that many releases that cost `cost` together.

    Raises:
        RefusedError: The cost is not a positive number.
    """
    rate = PlannedGdp(options.delta).rate
    multiplier = multiplier_of_plan(cost, rate * cost, options.sample, steps * releases)
    return DpSgdPlan(multiplier, options.sample, steps, options.clip, releases, cost, rate)


@functools.lru_cache(maxsize=256)
def multiplier_for(cost: float, sample: float, steps: int, order: int) -> float:
    """Return the least noise multiplier z at which `steps` steps cost at most `cost` at that order.

    Raises:
        RefusedError: The cost is not a positive number, or too small for any noise.
    """
    from scipy.optimize import brentq

    check_positive(cost=cost)
    if rdp(MAX_MULTIPLIER, sample, steps, order) > cost:
        raise RefusedError(f"privacy: no noise reduces the cost of {steps} steps to {cost}")
    if rdp(MIN_MULTIPLIER, sample, steps, order) <= cost:
        return MIN_MULTIPLIER
    bounds = MIN_MULTIPLIER, MAX_MULTIPLIER
    root = float(brentq(lambda z: rdp(z, sample, steps, order) - cost, *bounds, xtol=1e-12, rtol=1e-12))
    while rdp(root, sample, steps, order) > cost:
        root *= 1 + 1e-12
    return root


def _record_account(options: PrivacyOptions) -> Account:
    if options.accounting == "plan":
        return PlannedGdp(options.delta)
    return Rdp(fixed_order(options.epsilon, options.delta))


def _calibrate_steps(options: PrivacyOptions, cost: float, steps: int) -> DpSgd:
    if options.accounting == "plan":
        return plan_steps(options, cost, steps, 1)
    multiplier = multiplier_for(cost, options.sample, steps, fixed_order(options.epsilon, options.delta))
    return DpSgd(multiplier, options.sample, steps, options.clip)


DP_SGD = MechanismSpec(
    name="dp-sgd",
    summary="Gaussian noise on sums of gradients of norm at most {clip:g}, of records drawn with probability {sample:g}",
    account=_record_account,
    calibrate=_calibrate_steps,
    cost_power=2,
)


VECTOR_MECHANISMS: tuple[MechanismSpec[Mechanism], ...] = (GAUSSIAN, LAPLACE, PRIVUNIT)
"""Mechanisms for one vector, by `privacy.mechanism`."""


def select_spec(options: PrivacyOptions) -> MechanismSpec[AccountedMechanism]:
    """Return the spec of the mechanism that protects the unit of a run."""
    if options.unit == "record":
        return DP_SGD
    return DISCRETE_GAUSSIAN if options.trust == "helpers" else _vector_spec(options)


def build_account(options: PrivacyOptions) -> Account:
    """Return the account in which a run with these options is cheapest.

    Raises:
        ConfigError: ε is too small for the account at that δ.
    """
    return select_spec(options).account(options)


def build_mechanism(options: PrivacyOptions, cost: float, dimension: int) -> Mechanism:
    """Return the mechanism of `privacy.mechanism` that has that cost in its account.

    Raises:
        RefusedError: The cost is zero, negative, NaN or infinite, or the dimension is 0.
    """
    return _vector_spec(options).calibrate(options, cost, dimension)


def _vector_spec(options: PrivacyOptions) -> MechanismSpec[Mechanism]:
    return next(spec for spec in VECTOR_MECHANISMS if spec.name == options.mechanism)
