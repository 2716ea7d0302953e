"""DP-SGD, unit `record`: the Poisson-subsampled Gaussian mechanism (Mironov, Talwar and Zhang 2019), through Opacus.

Opacus is imported where it is used: it takes seconds, and most of the federation does without.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.optimize import brentq

from common.errors import RefusedError
from common.privacy.amounts import positive

ORDERS = (*range(2, 64), *range(64, 256, 8), *range(256, 1000, 32))
"""Integer orders, at which the Rényi divergence is a finite sum."""

_WIDEST = 1e6
"""Largest noise multiplier that is looked for."""


@dataclass(frozen=True)
class DpSgd:
    """`steps` noisy steps: each record joins with probability q, its gradient is clipped to C, the sum gets N(0, (zC)²).

    Neighbours differ by one record more or less, so the sum's sensitivity is C.
    """

    multiplier: float
    """z, the noise's standard deviation over the clip."""
    sample: float
    """q."""
    steps: int
    clip: float

    account: ClassVar[Literal["rdp"]] = "rdp"

    def __post_init__(self) -> None:
        positive(multiplier=self.multiplier, sample=self.sample, steps=self.steps, clip=self.clip)
        if self.sample > 1:
            raise RefusedError(f"privacy: sample must be a probability, not {self.sample}")

    @property
    def name(self) -> str:
        """With what decides its cost: q and the number of steps."""
        return f"dp-sgd q={self.sample!r} steps={self.steps}"

    @property
    def sensitivity(self) -> float:
        """C, of one step's sum of gradients."""
        return self.clip

    @property
    def noise(self) -> float:
        """zC, on one step's sum of gradients."""
        return self.multiplier * self.clip

    def cost(self, order: int) -> float:
        """Rényi divergence of that order, of all steps together."""
        return rdp(self.multiplier, self.sample, self.steps, order)


def rdp(multiplier: float, sample: float, steps: int, order: int) -> float:
    """Rényi divergence of order α of `steps` steps."""
    from opacus.accountants.analysis.rdp import compute_rdp

    return float(compute_rdp(q=sample, noise_multiplier=multiplier, steps=steps, orders=float(order)))


def multiplier_for(cost: float, sample: float, steps: int, order: int) -> float:
    """Least noise multiplier z at which `steps` steps cost at most `cost` at that order.

    Raises:
        RefusedError: The cost is no positive number, or too small for any noise.
    """
    positive(cost=cost)
    if rdp(_WIDEST, sample, steps, order) > cost:
        raise RefusedError(f"privacy: no noise makes {steps} steps cost only {cost}")
    if rdp(_LEAST, sample, steps, order) <= cost:
        return _LEAST
    root = float(brentq(lambda z: rdp(z, sample, steps, order) - cost, _LEAST, _WIDEST, xtol=1e-12, rtol=1e-12))
    while rdp(root, sample, steps, order) > cost:
        root *= 1 + 1e-12
    return root


_LEAST = 0.05
"""Smallest noise multiplier that is looked for; below it the finite sums overflow and nothing is hidden."""


def epsilon_rdp(multiplier: float, sample: float, steps: int, delta: float, orders: Sequence[int] = ORDERS) -> float:
    """ε at δ of steps fixed beforehand: the best of many orders, for reports."""
    from opacus.accountants.analysis.rdp import compute_rdp, get_privacy_spent

    divergences = compute_rdp(q=sample, noise_multiplier=multiplier, steps=steps, orders=list(orders))
    with warnings.catch_warnings(action="ignore"):  # that the best order is the first or the last
        return float(get_privacy_spent(orders=list(orders), rdp=divergences, delta=delta)[0])


def epsilon_prv(multiplier: float, sample: float, steps: int, delta: float) -> float:
    """ε at δ of steps fixed beforehand, nearly exact (Gopi, Lee and Wutschitz 2021); for reports, a ledger never uses it."""
    from opacus.accountants import PRVAccountant

    accountant = PRVAccountant()
    accountant.history = [(multiplier, sample, steps)]
    with np.errstate(divide="ignore"), warnings.catch_warnings(action="ignore"):
        return float(accountant.get_epsilon(delta))
