"""PrivUnitG: the direction of a vector under pure ε-DP (Asi, Feldman and Talwar 2022; Bhowmick et al. 2018)."""

import functools
import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr, ndtri_exp

from common.privacy.clipping import Vector, clip
from common.privacy.validation import positive


@dataclass(frozen=True)
class PrivUnit:
    """Sends a Gaussian vector that leans towards the direction v of what it hides.

    V ~ N(0, I) given ⟨V, v⟩ ≥ t with probability p, given ⟨V, v⟩ < t otherwise; with q = P(⟨V, v⟩ ≥ t) the density of an
    outcome differs between two directions by at most (p/q) / ((1 − p)/(1 − q)), which is made e^ε exactly. C·V/m is an
    unbiased estimate of C·v, where m = E⟨V, v⟩. Only the direction is sent: lengths are always C.
    """

    epsilon: float
    clip: float
    dimension: int

    name: ClassVar[Literal["privunit"]] = "privunit"

    def __post_init__(self) -> None:
        positive(epsilon=self.epsilon, clip=self.clip, dimension=self.dimension)

    @property
    def cost(self) -> float:
        """ε."""
        return self.epsilon

    @property
    def sensitivity(self) -> float:
        """2C, replace-one, in L2."""
        return 2 * self.clip

    @property
    def noise(self) -> float:
        """C/m, the standard deviation of a coordinate that v does not touch."""
        return self.clip * math.exp(-log_lean(self.threshold, self.epsilon))

    @property
    def threshold(self) -> float:
        """t, chosen to minimise the mean squared error."""
        return threshold(self.epsilon, self.dimension)

    @property
    def p(self) -> float:
        """Probability of an outcome on v's side: e^ε q / (1 − q + e^ε q)."""
        t = self.threshold
        return math.exp(log_ndtr(-t) - np.logaddexp(log_ndtr(-t), log_ndtr(t) - self.epsilon))

    @property
    def q(self) -> float:
        """The same probability for a direction that has nothing to do with the vector: P(N ≥ t)."""
        return math.exp(log_ndtr(-self.threshold))

    def release(self, vector: Vector, rng: np.random.Generator, normalise: bool = True) -> Vector:
        """An estimate of C times the vector's direction; `normalise` makes no difference.

        A zero vector has no direction: a uniformly random one is taken, so its estimate has mean zero and the guarantee
        stands.

        Raises:
            RefusedError: NaN or infinity in the vector.
        """
        v = clip(vector, 1.0, 2, normalise=True)
        v = v if v.any() else clip(rng.standard_normal(v.size), 1.0, 2, normalise=True)
        v /= np.linalg.norm(v)
        around = rng.standard_normal(v.size)
        along = self._along(1 - rng.random(2))
        return (around + (along - around @ v) * v) * self.noise

    def _along(self, u: Vector) -> float:
        """⟨V, v⟩ from two numbers uniform on (0, 1]: which side of t, and where there (inverse distribution function)."""
        t = self.threshold
        if u[0] <= self.p:
            return -float(ndtri_exp(math.log(u[1]) + log_ndtr(-t)))
        return float(ndtri_exp(math.log(u[1]) + log_ndtr(t)))


def log_lean(t: float, epsilon: float) -> float:
    """The logarithm of m = φ(t)(p/q − (1 − p)/(1 − q)) = φ(t)(1 − e^−ε) / (q + (1 − q)e^−ε); q may be tiny."""
    log_density = -(t**2 + math.log(2 * math.pi)) / 2
    return float(log_density + math.log(-math.expm1(-epsilon)) - np.logaddexp(log_ndtr(-t), log_ndtr(t) - epsilon))


@functools.lru_cache(maxsize=256)
def threshold(epsilon: float, dimension: int) -> float:
    """The t of least mean squared error E‖V/m − v‖² = d/m² + t/m − 1."""

    def error(t: float) -> float:
        lean = math.exp(-log_lean(t, epsilon))
        return dimension * lean**2 + t * lean

    return float(minimize_scalar(error, bounds=(0.0, math.sqrt(2 * epsilon) + 3), method="bounded").x)
