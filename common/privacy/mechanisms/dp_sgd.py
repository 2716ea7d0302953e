"""DP-SGD, unit `record`: the Poisson-subsampled Gaussian mechanism, accounted by Opacus.

See Mironov, Talwar and Zhang (2019).
Opacus is imported inside the function that needs it: the import takes seconds, and runs without this unit do not need it.
"""

import functools
from dataclasses import dataclass

from common.errors import RefusedError
from common.privacy.accounts import PrivacyCost, Rdp, fixed_order
from common.privacy.mechanisms.base import MechanismSpec, check_positive
from common.privacy.options import PrivacyOptions

MAX_MULTIPLIER = 1e6
"""Largest noise multiplier of the search."""

MIN_MULTIPLIER = 0.05
"""Smallest noise multiplier of the search.

Below it the finite sums overflow, and there is no protection.
"""


@dataclass(frozen=True)
class DpSgd:
    """DP-SGD of `steps` steps: Poisson sampling, gradients clipped to C, N(0, (zC)²) on their sum.

    Neighbours add or remove one record, so the sum's sensitivity is C.
    """

    multiplier: float
    """Noise multiplier z: the noise's standard deviation over the clip norm."""
    sample: float
    """Sampling probability q."""
    steps: int
    clip: float

    def __post_init__(self) -> None:
        check_positive(multiplier=self.multiplier, sample=self.sample, steps=self.steps, clip=self.clip)
        if self.sample > 1:
            raise RefusedError(f"privacy: sample must be a probability, not {self.sample}")

    @property
    def name(self) -> str:
        """Name in ledgers, with q and the number of steps, on which the cost depends."""
        return f"dp-sgd q={self.sample!r} steps={self.steps}"

    @property
    def sensitivity(self) -> float:
        """L2 sensitivity C of one step's sum of gradients."""
        return self.clip

    @property
    def noise(self) -> float:
        """Standard deviation zC on one step's sum of gradients."""
        return self.multiplier * self.clip

    @property
    def privacy_cost(self) -> PrivacyCost:
        """Rényi divergences of all steps together; sampled steps have no finite ρ and no pure ε."""
        return PrivacyCost.of_rdp(functools.partial(rdp, self.multiplier, self.sample, self.steps))


def rdp(multiplier: float, sample: float, steps: int, order: int) -> float:
    """Return the Rényi divergence of order α of `steps` steps."""
    from opacus.accountants.analysis.rdp import compute_rdp

    return float(compute_rdp(q=sample, noise_multiplier=multiplier, steps=steps, orders=float(order)))


@functools.lru_cache(maxsize=256)
def multiplier_for(cost: float, sample: float, steps: int, order: int) -> float:
    """Return the least noise multiplier z at which `steps` steps cost at most `cost` at that order.

    Raises:
        RefusedError: The cost is not a positive number, or too small for any noise.
    """
    from scipy.optimize import brentq

    check_positive(cost=cost)
    if rdp(MAX_MULTIPLIER, sample, steps, order) > cost:
        raise RefusedError(f"privacy: no noise reduces the cost of {steps} steps to {cost}")
    if rdp(MIN_MULTIPLIER, sample, steps, order) <= cost:
        return MIN_MULTIPLIER
    bounds = MIN_MULTIPLIER, MAX_MULTIPLIER
    root = float(brentq(lambda z: rdp(z, sample, steps, order) - cost, *bounds, xtol=1e-12, rtol=1e-12))
    while rdp(root, sample, steps, order) > cost:
        root *= 1 + 1e-12
    return root


def _account(options: PrivacyOptions) -> Rdp:
    return Rdp(fixed_order(options.epsilon, options.delta))


def _calibrate(options: PrivacyOptions, cost: float, steps: int) -> DpSgd:
    multiplier = multiplier_for(cost, options.sample, steps, _account(options).order)
    return DpSgd(multiplier, options.sample, steps, options.clip)


DP_SGD = MechanismSpec(
    name="dp-sgd",
    summary="Gaussian noise on sums of gradients of norm at most {clip:g}, of records drawn with probability {sample:g}",
    units=frozenset({"record"}),
    account=_account,
    calibrate=_calibrate,
    cost_power=2,
)
