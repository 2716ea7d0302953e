"""Gaussian mechanism for one vector, unit `client` (algorithms.md §4.8)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from common.arrays import Floats
from common.privacy.accounts import Zcdp
from common.privacy.clipping import clip
from common.privacy.cost import PrivacyCost
from common.privacy.mechanisms.spec import MechanismSpec
from common.privacy.validation import check_positive
from common.privacy.vectors import blocks
from common.privacy.zcdp import sigma_of


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
