"""Mechanisms for one vector: Gaussian, Laplace, PrivUnitG (algorithms.md §4.8)."""

import functools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from common.arrays import Floats
from common.privacy.accounts import PrivacyCost, Pure, Zcdp, sigma_of
from common.privacy.mechanisms.base import MechanismSpec, check_positive
from common.privacy.vectors import blocks, clip


@dataclass(frozen=True)
class Gaussian:
    """Gaussian mechanism: L2 clip to C, then N(0, σ²) on every coordinate; ρ-zCDP.

    It is unbiased for vectors within the clip. Neighbours replace the vector by any other (replace-one).
    """

    rho: float
    clip: float

    name: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        check_positive(rho=self.rho, clip=self.clip)

    @property
    def privacy_cost(self) -> PrivacyCost:
        """Cost ρ of zCDP."""
        return PrivacyCost.of_zcdp(self.rho)

    @property
    def sensitivity(self) -> float:
        """L2 sensitivity 2C."""
        return 2 * self.clip

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
        released = clip(vector, self.clip, 2, normalise)
        for block in blocks(released):
            block += self.noise * rng.standard_normal(block.size)
        return released


GAUSSIAN = MechanismSpec(
    name=Gaussian.name,
    summary="Gaussian noise on {what}, as one vector of Euclidean norm at most {clip:g}",
    units=frozenset({"client"}),
    account=lambda options: Zcdp(),
    calibrate=lambda options, rho, size: Gaussian(rho, options.clip),
    cost_power=2,
)


@dataclass(frozen=True)
class Laplace:
    """Laplace mechanism: L1 clip of the whole vector to C, then Laplace(b) on every coordinate; pure ε-DP.

    It is unbiased for vectors within the clip. Neighbours replace the vector by any other (replace-one).
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
    def sensitivity(self) -> float:
        """L1 sensitivity 2C."""
        return 2 * self.clip

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
        released = clip(vector, self.clip, 1, normalise)
        for block in blocks(released):
            block += rng.laplace(0.0, self.noise, block.size)
        return released


LAPLACE = MechanismSpec(
    name=Laplace.name,
    summary="Laplace noise on {what}, as one vector of absolute sum at most {clip:g}",
    units=frozenset({"client"}),
    account=lambda options: Pure(),
    calibrate=lambda options, epsilon, size: Laplace(epsilon, options.clip),
    cost_power=1,
)


@dataclass(frozen=True)
class PrivUnit:
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
    def sensitivity(self) -> float:
        """L2 sensitivity 2C, replace-one."""
        return 2 * self.clip

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
    units=frozenset({"client"}),
    account=lambda options: Pure(),
    calibrate=lambda options, epsilon, size: PrivUnit(epsilon, options.clip, size),
    cost_power=1,
)
