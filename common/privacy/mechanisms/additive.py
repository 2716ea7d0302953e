"""Mechanisms that release one vector, unit `client`: one clip and one noise over everything a client sends (§4.8).

All are unbiased for vectors within the clip, and hide any replacement of the vector by another (replace-one, 2C).
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, assert_never

import numpy as np

from common.privacy.clipping import Vector, clip
from common.privacy.mechanisms.privunit import PrivUnit
from common.privacy.options import PrivacyOptions
from common.privacy.validation import positive
from common.privacy.zcdp import sigma_of


@dataclass(frozen=True)
class Gaussian:
    """L2 clip to C, then N(0, σ²) on every coordinate: ρ-zCDP."""

    rho: float
    clip: float

    name: ClassVar[Literal["gaussian"]] = "gaussian"

    def __post_init__(self) -> None:
        positive(rho=self.rho, clip=self.clip)

    @property
    def cost(self) -> float:
        """ρ."""
        return self.rho

    @property
    def sensitivity(self) -> float:
        """2C in L2."""
        return 2 * self.clip

    @property
    def noise(self) -> float:
        """σ = 2C / √(2ρ)."""
        return sigma_of(self.rho, self.sensitivity)

    def release(self, vector: Vector, rng: np.random.Generator, normalise: bool = False) -> Vector:
        """The clipped vector with noise.

        Raises:
            RefusedError: NaN or infinity in the vector.
        """
        released = clip(vector, self.clip, 2, normalise)
        for part in _parts(released):
            part += self.noise * rng.standard_normal(part.size)
        return released


@dataclass(frozen=True)
class Laplace:
    """L1 clip of the whole vector to C, then Laplace(b) on every coordinate: pure ε-DP."""

    epsilon: float
    clip: float

    name: ClassVar[Literal["laplace"]] = "laplace"

    def __post_init__(self) -> None:
        positive(epsilon=self.epsilon, clip=self.clip)

    @property
    def cost(self) -> float:
        """ε."""
        return self.epsilon

    @property
    def sensitivity(self) -> float:
        """2C in L1."""
        return 2 * self.clip

    @property
    def noise(self) -> float:
        """Scale b = 2C / ε; the variance is 2b²."""
        return self.sensitivity / self.epsilon

    def release(self, vector: Vector, rng: np.random.Generator, normalise: bool = False) -> Vector:
        """The clipped vector with noise.

        Raises:
            RefusedError: NaN or infinity in the vector.
        """
        released = clip(vector, self.clip, 1, normalise)
        for part in _parts(released):
            part += rng.laplace(0.0, self.noise, part.size)
        return released


Mechanism = Gaussian | Laplace | PrivUnit

PART = 8192
"""Numbers that get their noise at once: it stays in the processor's cache."""


def _parts(vector: Vector) -> list[Vector]:
    """Views of the vector, one after the other."""
    return [vector[start : start + PART] for start in range(0, vector.size, PART)]


def build_mechanism(options: PrivacyOptions, cost: float, dimension: int) -> Mechanism:
    """The mechanism that the options name, at that cost: ρ for `gaussian`, ε for the pure ones.

    Raises:
        RefusedError: The cost is zero, negative, NaN or infinite, or there is nothing to release.
    """
    match options.mechanism:
        case "gaussian":
            return Gaussian(cost, options.clip)
        case "laplace":
            return Laplace(cost, options.clip)
        case "privunit":
            return PrivUnit(cost, options.clip, dimension)
        case _:
            assert_never(options.mechanism)
