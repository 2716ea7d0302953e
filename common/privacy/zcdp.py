"""Zero-concentrated differential privacy (Bun and Steinke 2016) in closed form; L = ln(1/δ)."""

import math


def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest ρ whose ρ-zCDP gives (ε, δ)-DP: (√(ε + L) − √L)² (Prop 1.3 solved for ρ)."""
    log = math.log(1 / delta)
    return (epsilon / (math.sqrt(epsilon + log) + math.sqrt(log))) ** 2  # no difference of near equals


def epsilon_of(rho: float, delta: float) -> float:
    """Return ε of ρ-zCDP at δ: ρ + 2√(ρL) (Prop 1.3); inverse of `rho_of`."""
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def sigma_of(rho: float, sensitivity: float) -> float:
    """Return the noise standard deviation of the Gaussian mechanism for ρ-zCDP: Δ / √(2ρ) (Prop 1.6)."""
    return sensitivity / math.sqrt(2 * rho)


def rho_of_pure(epsilon: float) -> float:
    """Return the ρ of a pure ε-DP mechanism: ε²/2 (Prop 1.4)."""
    return epsilon**2 / 2
