"""Zero-concentrated differential privacy (Bun and Steinke 2016); L = ln(1/δ).

Conversion to (ε, δ) by Canonne, Kamath and Steinke (2020), Prop 12, with x = α − 1:
δ ≤ exp(x((1 + x)ρ − ε)) / x · (1 − 1/(1 + x))^(1 + x). Every x > 0 is valid, so an inexact x errs on the safe side.
The best x solves ρx² = L − ln(1 + x), of which one side rises and the other falls.
"""

import functools
import math
from collections.abc import Callable

_STEPS = 200
"""Bisections, until neighbouring floats are reached."""


@functools.lru_cache(maxsize=1024)
def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest ρ whose ρ-zCDP gives (ε, δ)-DP."""

    def excess(x: float) -> float:
        return _epsilon(_rho_at(x, delta), delta, x) - epsilon

    x = _root(excess, 1 / delta - 1)
    return (epsilon - _rest(delta, x)) / (1 + x)


@functools.lru_cache(maxsize=1024)
def epsilon_of(rho: float, delta: float) -> float:
    """Return ε of ρ-zCDP at δ; inverse of `rho_of`."""
    if rho == 0:
        return 0.0
    x = _root(lambda x: _rho_at(x, delta) - rho, 1 / delta - 1)
    return max(0.0, _epsilon(rho, delta, x))


def sigma_of(rho: float, sensitivity: float) -> float:
    """Return the noise standard deviation of the Gaussian mechanism for ρ-zCDP: Δ / √(2ρ) (Prop 1.6)."""
    return sensitivity / math.sqrt(2 * rho)


def rho_of_pure(epsilon: float) -> float:
    """Return the ρ of a pure ε-DP mechanism: ε²/2 (Prop 1.4)."""
    return epsilon**2 / 2


def _epsilon(rho: float, delta: float, x: float) -> float:
    """Return ε at order 1 + x."""
    return (1 + x) * rho + _rest(delta, x)


def _rest(delta: float, x: float) -> float:
    """Return the part of ε at order 1 + x that does not depend on ρ."""
    return (math.log(1 / delta) - math.log1p(x)) / x - math.log1p(1 / x)


def _rho_at(x: float, delta: float) -> float:
    """Return the ρ for which order 1 + x is the best; falls with x."""
    return (math.log(1 / delta) - math.log1p(x)) / x / x


def _root(falling: Callable[[float], float], highest: float) -> float:
    """Return where a falling function of x in (0, highest] crosses 0, by bisection of ln x."""
    low, high = math.log(1e-12), math.log(highest)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if falling(math.exp(middle)) > 0 else (low, middle)
    return math.exp(low)
