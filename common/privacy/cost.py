"""Privacy cost of one release, stated by its mechanism for every account."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from common.privacy.zcdp import rho_of_pure


@dataclass(frozen=True)
class PrivacyCost:
    """Cost of one release in each account; infinity where the mechanism states no finite bound."""

    pure: float = math.inf
    """ε of pure differential privacy."""
    zcdp: float = math.inf
    """ρ of zCDP."""
    rdp: Callable[[int], float] | None = None
    """Order α -> Rényi divergence of that order."""

    @classmethod
    def of_pure(cls, epsilon: float) -> Self:
        """Return the cost of a pure mechanism: ε; ρ = ε²/2; RDP(α) = min(ε, αε²/2)."""
        rho = rho_of_pure(epsilon)
        return cls(epsilon, rho, lambda order: min(epsilon, order * rho))

    @classmethod
    def of_zcdp(cls, rho: float) -> Self:
        """Return the cost of a zCDP mechanism: ρ; RDP(α) = αρ; no pure ε."""
        return cls(zcdp=rho, rdp=lambda order: order * rho)

    @classmethod
    def of_rdp(cls, divergence: Callable[[int], float]) -> Self:
        """Return the cost of a mechanism whose Rényi divergences alone are known."""
        return cls(rdp=divergence)
