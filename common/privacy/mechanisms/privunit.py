"""PrivUnitG: the direction of a vector under pure ε-DP (Asi et al. 2022; Bhowmick et al. 2018)."""

import functools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from common.arrays import Floats
from common.privacy.accounts import Pure
from common.privacy.clipping import clip
from common.privacy.cost import PrivacyCost
from common.privacy.mechanisms.spec import MechanismSpec
from common.privacy.validation import check_positive


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
