"""Discrete Gaussian noise of a helper on a sum of integer vectors, unit `client`."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from common.privacy.accounts import Zcdp
from common.privacy.cost import PrivacyCost
from common.privacy.mechanisms.spec import MechanismSpec
from common.secure.quantise import integer_clip, noise_scale, squared_sensitivity
from common.secure.terms import Sign


@dataclass(frozen=True)
class DiscreteGaussian:
    """Noise N_ℤ(0, s²) of one helper on every number of a sum; ρ-zCDP with ρ = Δ²/(2s²), exactly.

    Neighbours replace one client's vector by any other of norm at most c (Canonne, Kamath and Steinke 2020). Noise of further
    helpers and other clients' vectors are post-processing.
    """

    bound: int
    """c, largest L2 norm of a client's integers."""
    sign: Sign
    scale: int
    """s, standard deviation of the noise in integer units."""

    name: ClassVar[str] = "discrete-gaussian-sum"

    @property
    def sensitivity(self) -> float:
        """Δ, L2 sensitivity of the sum in integer units."""
        return math.sqrt(squared_sensitivity(self.bound, self.sign))

    @property
    def noise(self) -> float:
        """S."""
        return float(self.scale)

    @property
    def privacy_cost(self) -> PrivacyCost:
        """Cost ρ = Δ²/(2s²) of zCDP, rounded up."""
        exact = Fraction(squared_sensitivity(self.bound, self.sign), 2 * self.scale**2)
        rho = float(exact)
        return PrivacyCost.of_zcdp(rho if Fraction(rho) >= exact else math.nextafter(rho, math.inf))


def _calibrate(rho: float, size: int) -> DiscreteGaussian:
    bound = integer_clip(size)
    return DiscreteGaussian(bound, "signed", noise_scale(rho, bound, "signed"))


DISCRETE_GAUSSIAN = MechanismSpec(
    name=DiscreteGaussian.name,
    summary="discrete Gaussian noise of every helper on sums over clients of {what}, each client's as one vector of Euclidean"
    " norm at most {clip:g}",
    units=frozenset({"client"}),
    account=lambda options: Zcdp(),
    calibrate=lambda options, rho, size: _calibrate(rho, size),
    cost_power=2,
)
