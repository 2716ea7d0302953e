"""Prior scores of the rules task from counts of relations by device type, exact or with noise.

The prior over counts is fitted to all cells that can have some. It is post-processing of a released value and costs no privacy.

C₁[f, r] (C₂[f, r]) is the number of training rules of relation r whose trigger (action) device has type f; C[r] is their
total. A rule between types (f, g) is about C₁[f,r]·C₂[g,r]/C[r] times as likely as by chance. The logarithm is a sum of one
term per device; the model adds these terms to its output.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce

import numpy as np

from common.arrays import Array, Arrays, Flags, Floats, add, check_like
from common.tasks.rules.vocabulary import RuleCatalogue

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


COUNTS = "counts"
"""Name of the summed counts in the arrays of a message, 2 × F × R."""

NOISE = "counts_noise"
"""Name of the standard deviation of noise on the summed counts; absent without noise."""

OWN = "counts_own"
"""Name of a client's own part of noised sums, on that client alone."""


def check_counts(counts: Arrays, catalogue: RuleCatalogue) -> None:
    """Check a client's counts.

    Raises:
        WireError: The counts are not one array `counts` of shape 2 × F × R and type float32.
    """
    check_like(counts, zeros(catalogue), "counts")


def zeros(catalogue: RuleCatalogue) -> Arrays:
    """Return counts of zero."""
    return {COUNTS: np.zeros((2, len(catalogue.entities), len(catalogue.relations)), np.float32)}


def label(sums: Arrays, noise: float) -> Arrays:
    """Return the sums with the standard deviation of their noise, if they have some."""
    return {**sums, NOISE: np.array([noise], np.float32)} if noise else sums


def visible_share(statics: Arrays, catalogue: RuleCatalogue) -> float:
    """Return the estimated share of variance that noise leaves to possible counts; 1 without noise."""
    possible = _possible(catalogue)
    if NOISE not in statics or not possible.any():
        return 1.0
    content, noise = statics[COUNTS][possible].tobytes(), float(statics[NOISE].item())
    prior, expected = fit_prior(content, noise), expect_all(content, noise).count
    variance = prior.weights @ prior.grid**2 - (prior.weights @ prior.grid) ** 2
    return min(1.0, float(expected.var() / variance)) if variance > 0 else 0.0


def add_counts(members: Sequence[Arrays]) -> Arrays:
    """Return the sum of several clients' counts."""
    return reduce(add, members)


def offset_of(statics: Mapping[str, Array], catalogue: RuleCatalogue) -> Array:
    """Return logits 2 × F × R: log(C_i + s) − ½log(C + s) for i = 1, 2; zeros without counts.

    Noised counts are replaced by their expectations, which are 0 where the vocabulary rules out the device type. A client's own
    part, if it is among the statics, is left out of them.
    """
    counts = statics.get(COUNTS)
    if counts is None:
        return zeros(catalogue)[COUNTS]
    if NOISE in statics:
        client_part = statics[OWN].tobytes() if OWN in statics else b""
        return _noised_offset(counts.tobytes(), client_part, float(statics[NOISE].item()), catalogue)
    counts = np.maximum(counts, 0)
    return _offset(counts, np.log(counts + SMOOTHING))


def _offset(counts: Array, logarithms: Array) -> Array:
    totals = counts.sum(axis=1, keepdims=True)
    offset: Array = logarithms - 0.5 * np.log(totals + SMOOTHING)
    return offset.astype(np.float32)


@lru_cache(maxsize=256)
def _noised_offset(content: bytes, client_part: bytes, noise: float, catalogue: RuleCatalogue) -> Array:
    """Return the offset of noised counts without a client's own part; cached, since every round needs it.

    Args:
        content: Bytes of the counts, float32.
        client_part: Bytes of the own part, float32; empty for none.
        noise: Standard deviation of the noise.
        catalogue: Vocabulary of the counts.
    """
    possible = _possible(catalogue)
    noised = np.frombuffer(content, np.float32).reshape(possible.shape)
    count, logarithm = np.zeros(noised.shape), np.full(noised.shape, np.log(SMOOTHING))
    expected = expect_all(noised[possible].tobytes(), noise)
    count[possible], logarithm[possible] = expected.count, expected.logarithm
    if client_part:
        part = np.frombuffer(client_part, np.float32).reshape(noised.shape)
        touched = np.nonzero(part * possible)
        others = expect(noised[touched] - part[touched], fit_prior(noised[possible].tobytes(), noise), noise)
        count[touched], logarithm[touched] = others.count, others.logarithm
    return _offset(count, logarithm)


@lru_cache(maxsize=4)
def _possible(catalogue: RuleCatalogue) -> Flags:
    """Return the mask of the counts that rules of the vocabulary can have, 2 × F × R."""
    return np.stack(catalogue.possible())
