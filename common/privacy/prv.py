"""Gaussian DP of a fixed number of DP-SGD steps, by Opacus' composition of privacy losses.

The composition is numerical (Gopi, Lee and Wutschitz 2021).

Steps with Poisson sampling are μ-GDP but for a probability δ′ if δ(ε) ≤ δ′ + (1 − δ′)·δ_μ(ε) for every ε ≥ 0, both for a
removed and for an added record. δ(ε) is that of the composed steps, δ_μ(ε) that of μ-GDP. Such costs add up with those of other
releases, of which each may depend on earlier outputs: μ² as in Gaussian DP, and the probabilities δ′.

Opacus composes numerically: |error of ε| is at most η, but for a probability ζ. Both are added here on the safe side.
"""

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from common.arrays import Floats
from common.privacy.accounts import Rdp, check_positive

MIN_MULTIPLIER = 0.05
"""Smallest noise multiplier of the search.

Below it the finite sums overflow, and there is no protection.
"""

_ORDERS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Orders of Rényi divergences that bound the range of privacy losses."""

_ERROR, _ERROR_SHARE = 0.01, 0.05
"""η: the smaller of a number and a share of μ."""

_LARGEST_ERROR = 0.5
"""η above which Opacus' bound on the range of losses is not proved."""

_POINTS = 2**20
"""Largest number of points of a distribution of losses."""

_COMPARED = 4000
"""Number of values of ε at which two δ(ε) are compared."""

_PRECISION = 1.002
"""Largest ratio of the found noise multiplier to the least one."""


@dataclass(frozen=True)
class AddedRecordLoss:
    """Privacy loss of one step if a record is added; that of a removed record is Opacus' class."""

    sample: float
    multiplier: float

    def cdf(self, t: Floats) -> Floats:
        """Return the probability of a loss of at most t.

        It is P(−ln(1 − q + q·e^{(2x − 1)/(2z²)}) ≤ t) for x ~ N(0, z²).
        """
        from scipy.special import ndtr

        q, z = self.sample, self.multiplier
        ratio = np.exp(-np.asarray(t, np.float64)) + q - 1
        within = np.log(np.where(ratio > 0, ratio / q, 1.0))
        return np.where(ratio > 0, ndtr(-within * z - 1 / (2 * z)), 1.0)


@functools.lru_cache(maxsize=256)
def multiplier_of_plan(cost: float, failure: float, sample: float, steps: int) -> float:
    """Return a noise multiplier z at which all steps are μ-GDP but for a probability `failure`.

    μ²/2 is `cost`. z exceeds the least one that the composition admits by at most 0.2 %.

    Raises:
        RefusedError: The cost is not a positive number.
    """
    check_positive(cost=cost, failure=failure)
    unsampled = max(MIN_MULTIPLIER, math.sqrt(steps / (2 * cost)))
    if sample == 1:
        return unsampled
    # In the limit of many steps μ = q·√(n·(e^{1/z²} − 1)) (Dong, Roth and Su 2019, Cor 5.4).
    low = high = max(MIN_MULTIPLIER, 1 / math.sqrt(math.log1p(2 * cost / steps / sample**2)))
    while high < unsampled and not _is_gdp(cost, failure, sample, high, steps):
        low, high = high, min(1.05 * high, unsampled)
    while high > _PRECISION * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if _is_gdp(cost, failure, sample, middle, steps) else (middle, high)
    return high


def _is_gdp(cost: float, failure: float, sample: float, multiplier: float, steps: int) -> bool:
    """Return True if the steps are shown to be μ-GDP with μ²/2 = `cost`, but for the probability."""
    from scipy.special import log_ndtr, ndtr

    mu = math.sqrt(2 * cost)
    try:
        curves = list(_compose(sample, multiplier, steps, min(_ERROR, _ERROR_SHARE * mu), failure / 100))
    except RuntimeError:  # a mesh too coarse for these losses
        return False
    for epsilons, deltas in curves:
        first, last = int(np.searchsorted(epsilons, 0.0, "right")) - 1, int(np.count_nonzero(deltas > failure))
        points = np.unique(np.linspace(max(first, 0), max(last, first + 1), _COMPARED).astype(np.int64))
        above, below = (
            deltas[points[:-1]],
            epsilons[points[1:]],
        )  # both fall: between two points, the one bounds the other
        gdp = ndtr(mu / 2 - below / mu) - np.exp(below + log_ndtr(-mu / 2 - below / mu))
        if (above > failure + (1 - failure) * gdp).any():
            return False
    return bool(curves)


def _compose(
    sample: float, multiplier: float, steps: int, error: float, delta_error: float
) -> Iterator[tuple[Floats, Floats]]:
    """Yield ε, ascending, with upper bounds of δ(ε): for a removed and for an added record.

    Nothing is yielded if no bound is shown.

    Args:
        sample: q.
        multiplier: z.
        steps: n.
        error: Wanted η; it is larger if the losses have a wide range.
        delta_error: ζ.
    """
    from opacus.accountants.analysis import prv

    most = _largest_loss(sample, multiplier, steps, delta_error)
    spread = math.sqrt(steps * math.log(12 / delta_error) / 2)
    error = max(error, 2 * most * spread / _POINTS)
    if not error <= _LARGEST_ERROR:
        return
    domain = prv.Domain.create_aligned(-most, most, error / spread)
    for loss in (prv.PoissonSubsampledGaussianPRV(sample, multiplier), AddedRecordLoss(sample, multiplier)):
        step = prv.discretize(prv.TruncatedPrivacyRandomVariable(loss, domain.t_min, domain.t_max), domain)
        composed = prv.compose_heterogeneous([step], [steps])
        losses, masses = composed.domain.ts, composed.pmf
        rounding = 2 * float(np.abs(masses[masses < 0]).sum())  # of the Fourier transform
        above = np.flip(np.flip(masses).cumsum())
        weighted = np.flip(np.flip(masses * np.exp(-losses)).cumsum())
        yield losses + error, above - np.exp(losses) * weighted + delta_error + rounding


def _largest_loss(sample: float, multiplier: float, steps: int, delta_error: float) -> float:
    """Return a bound on the absolute loss of all steps and of each, but for ζ (Gopi et al., Remark 5.6)."""

    def bound(count: int, delta: float) -> float:
        return min(Rdp(order).claim(rdp(multiplier, sample, count, order), delta) for order in _ORDERS)

    return max(bound(steps, delta_error / 4), bound(1, delta_error / (8 * steps))) + 3


def rdp(multiplier: float, sample: float, steps: int, order: int) -> float:
    """Return the Rényi divergence of order α of `steps` steps."""
    from opacus.accountants.analysis.rdp import compute_rdp

    return float(compute_rdp(q=sample, noise_multiplier=multiplier, steps=steps, orders=float(order)))
