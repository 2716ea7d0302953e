"""Reference accountants: DP-SGD steps by Opacus, and the closed form of zCDP that earlier versions used."""

import math
import warnings

import numpy as np
from opacus.accountants import PRVAccountant
from opacus.accountants.analysis.rdp import compute_rdp, get_privacy_spent

ORDERS = [*range(2, 64), *range(64, 256, 8), *range(256, 1000, 32)]
"""Integer orders, at which the Rényi divergence is a finite sum."""


def epsilon_rdp(multiplier: float, sample: float, steps: int, delta: float) -> float:
    """Return ε at δ, the smallest over many orders."""
    divergences = compute_rdp(q=sample, noise_multiplier=multiplier, steps=steps, orders=ORDERS)
    with warnings.catch_warnings(action="ignore"):  # warns if the best order is the first or the last
        return float(get_privacy_spent(orders=ORDERS, rdp=divergences, delta=delta)[0])


def epsilon_prv(multiplier: float, sample: float, steps: int, delta: float) -> float:
    """Return ε at δ, nearly exact (Gopi, Lee and Wutschitz 2021)."""
    accountant = PRVAccountant()
    accountant.history = [(multiplier, sample, steps)]
    with np.errstate(divide="ignore"), warnings.catch_warnings(action="ignore"):
        return float(accountant.get_epsilon(delta))


def closed_rho(epsilon: float, delta: float) -> float:
    """Return ρ(ε, δ) by Bun and Steinke (2016), Prop 1.3, which earlier versions used."""
    log = math.log(1 / delta)
    return (epsilon / (math.sqrt(epsilon + log) + math.sqrt(log))) ** 2


def closed_epsilon(rho: float, delta: float) -> float:
    """Return ε of ρ-zCDP by the same closed form."""
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))
