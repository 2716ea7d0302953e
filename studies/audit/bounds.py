"""Lower bounds on privacy loss from the outcomes of guesses."""

import math

import numpy as np
from scipy.stats import beta, binom, norm

SIDE_ERROR = 1e-4
"""Probability with which a bound on one share may be wrong, so that a false alarm is rare."""

ONE_RUN_ERROR = 0.05
"""Probability with which the bound of a one-run audit may be wrong."""

_STEPS = 50
"""Bisections of ε."""


def share_bounds(hits: int, trials: int, error: float = SIDE_ERROR) -> tuple[float, float]:
    """Return the Clopper-Pearson bounds of a share, each of which is wrong with probability `error`."""
    low = float(beta.ppf(error, hits, trials - hits + 1)) if hits else 0.0
    high = float(beta.ppf(1 - error, hits + 1, trials - hits)) if hits < trials else 1.0
    return low, high


def mu_bound(hits: int, alarms: int, trials: int) -> float:
    """Return a lower bound on μ = Φ⁻¹(1 − FPR) − Φ⁻¹(FNR) of Gaussian noise (Nasr et al. 2023).

    Args:
        hits: Events with the content that the guesser looks for.
        alarms: Events with the other content.
        trials: Trials of each content.
    """
    least_hits, _ = share_bounds(hits, trials)
    _, most_alarms = share_bounds(alarms, trials)
    return max(0.0, float(norm.ppf(least_hits) - norm.ppf(most_alarms)))


def epsilon_bound(hits: int, alarms: int, trials: int) -> float:
    """Return a lower bound on the ε of a pure mechanism, ln(TPR/FPR), at least 0."""
    least_hits, _ = share_bounds(hits, trials)
    _, most_alarms = share_bounds(alarms, trials)
    return max(0.0, math.log(least_hits / most_alarms)) if least_hits else 0.0


def one_run_bound(right: int, guesses: int, canaries: int, delta: float, error: float = ONE_RUN_ERROR) -> float:
    """Return a lower bound on ε at δ from guesses in one run (Steinke, Nasr and Jagielski 2023).

    Args:
        right: Number of right guesses.
        guesses: Number of guesses.
        canaries: Number of records that were in or out by a fair coin.
        delta: δ of the guarantee.
        error: Probability with which the bound may be wrong.
    """
    low, high = 0.0, 1.0
    while _one_run_chance(high, right, guesses, canaries, delta) < error:
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        is_refuted = _one_run_chance(middle, right, guesses, canaries, delta) < error
        low, high = (middle, high) if is_refuted else (low, middle)
    return low


def _one_run_chance(epsilon: float, right: int, guesses: int, canaries: int, delta: float) -> float:
    """Return the largest probability of so many right guesses under (ε, δ)."""
    share, more = 1 / (1 + math.exp(-epsilon)), np.arange(1, right + 1)
    excess = np.cumsum(binom.pmf(right - more, guesses, share)) / more
    chance = float(binom.sf(right - 1, guesses, share))
    return min(1.0, chance + 2 * canaries * delta * float(excess.max(initial=0.0)))
