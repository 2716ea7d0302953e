"""DP-SGD, unit `record`: the Poisson-subsampled Gaussian mechanism (Mironov, Talwar and Zhang 2019), through Opacus.

Opacus is imported where it is used: it takes seconds, and most of the federation does without.
"""

from dataclasses import dataclass

from scipy.optimize import brentq

from common.errors import RefusedError
from common.privacy.validation import positive

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
