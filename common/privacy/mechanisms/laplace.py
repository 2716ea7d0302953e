"""Laplace mechanism for one vector, unit `client` (algorithms.md §4.8)."""

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
from common.privacy.vectors import blocks


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
