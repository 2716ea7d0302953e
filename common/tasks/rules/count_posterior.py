"""Expected counts behind sums with Gaussian noise, by empirical Bayes (Robbins 1956). Pure.

The prior over counts is fitted to all cells that can have some. It is post-processing of a released value and costs no privacy.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from common.arrays import Array, Floats

SMOOTHING = 0.1
"""s: added to every count; unseen combinations become unlikely, not impossible."""

LEAST_NOISE = 0.3
"""Standard deviation below which noised counts are better taken as they are; one rule counts 1."""

STEPS = 200
"""Number of EM steps."""

RATIO, FIRST = 1.2, 0.25
"""Ratio of neighbouring counts of the grid, and its least positive count relative to the noise."""


@dataclass(frozen=True)
class Prior:
    """Distribution of counts on a grid of 0 and a geometric sequence."""

    grid: Floats
    weights: Floats


@dataclass(frozen=True)
class Expected:
    """Expectations given the noised counts, in their shape."""

    count: Floats
    logarithm: Floats
    """Expectation of log(count + s)."""


@lru_cache(maxsize=4)
def fit_prior(content: bytes, noise: float) -> Prior:
    """Fit the prior to noised counts.

    Args:
        content: Bytes of the counts, float32.
        noise: Standard deviation of their noise.
    """
    noised = np.frombuffer(content, np.float32).astype(np.float64)
    first = FIRST * noise
    length = max(1, int(np.ceil(np.log(noised.max(initial=first) / first) / np.log(RATIO))) + 1)
    grid = np.concatenate([[0.0], first * RATIO ** np.arange(length)])
    likelihood = _likelihood(noised, grid, noise)
    weights = np.full(len(grid), 1 / len(grid))
    for _ in range(STEPS if len(noised) else 0):
        weights = weights * (likelihood.T @ (1 / (likelihood @ weights))) / len(noised)
    return Prior(grid, weights)


def expect(noised: Array, prior: Prior, noise: float) -> Expected:
    """Return the expectations of counts; counts with little noise are taken as they are, at least 0."""
    if noise < LEAST_NOISE:
        counts = np.maximum(noised.astype(np.float64), 0)
        return Expected(counts, np.log(counts + SMOOTHING))
    posterior = _likelihood(noised.ravel().astype(np.float64), prior.grid, noise) * prior.weights
    posterior /= posterior.sum(axis=1, keepdims=True)
    count, logarithm = posterior @ prior.grid, posterior @ np.log(prior.grid + SMOOTHING)
    return Expected(count.reshape(noised.shape), logarithm.reshape(noised.shape))


@lru_cache(maxsize=4)
def expect_all(content: bytes, noise: float) -> Expected:
    """Return the expectations of all counts of a sum; cached, since all clients share them.

    Args:
        content: Bytes of the counts, float32.
        noise: Standard deviation of their noise.
    """
    return expect(np.frombuffer(content, np.float32), fit_prior(content, noise), noise)


def _likelihood(noised: Floats, grid: Floats, noise: float) -> Floats:
    """Return the likelihood of every count of the grid, cells × grid; the best one of a cell is 1."""
    exponents = -(((noised[:, None] - grid) / noise) ** 2) / 2
    likelihood: Floats = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    return likelihood
