"""Prior scores of the rules task from counts of relations by device type.

C₁[f, r] (C₂[f, r]) is the number of training rules of relation r whose trigger (action) device has type f; C[r] is their
total. A rule between types (f, g) is about C₁[f,r]·C₂[g,r]/C[r] times as likely as by chance. The logarithm is a sum of one
term per device; the model adds these terms to its output.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache, reduce

import numpy as np

from common.arrays import Array, Arrays, Flags, add, check_like
from common.tasks.rules.count_posterior import SMOOTHING, expect, expect_all, fit_prior
from common.tasks.rules.vocabulary import RuleCatalogue

COUNTS = "counts"
"""Name of the summed counts in the arrays of a message, 2 × F × R."""

NOISE = "counts_noise"
"""Name of the standard deviation of noise on the summed counts; absent without noise."""

OWN = "counts_own"
"""Name of a client's own part of noised sums, on that client alone."""

STATICS = (COUNTS, NOISE)
"""Names of the untrained inputs of a model."""


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


def add_counts(parts: Sequence[Arrays]) -> Arrays:
    """Return the sum of several clients' counts."""
    return reduce(add, parts)


def offset_of(statics: Mapping[str, Array], catalogue: RuleCatalogue) -> Array:
    """Return logits 2 × F × R: log(C_i + s) − ½log(C + s) for i = 1, 2; zeros without counts.

    Noised counts are replaced by their expectations, which are 0 where the vocabulary rules out the device type. A client's own
    part, if it is among the statics, is left out of them.
    """
    counts = statics.get(COUNTS)
    if counts is None:
        return zeros(catalogue)[COUNTS]
    if NOISE in statics:
        own = statics[OWN].tobytes() if OWN in statics else b""
        return _noised_offset(counts.tobytes(), own, float(statics[NOISE].item()), catalogue)
    counts = np.maximum(counts, 0)
    return _offset(counts, np.log(counts + SMOOTHING))


def _offset(counts: Array, logarithms: Array) -> Array:
    totals = counts.sum(axis=1, keepdims=True)
    offset: Array = logarithms - 0.5 * np.log(totals + SMOOTHING)
    return offset.astype(np.float32)


@lru_cache(maxsize=256)
def _noised_offset(content: bytes, own: bytes, noise: float, catalogue: RuleCatalogue) -> Array:
    """Return the offset of noised counts without a client's own part; cached, since every round needs it.

    Args:
        content: Bytes of the counts, float32.
        own: Bytes of the own part, float32; empty for none.
        noise: Standard deviation of the noise.
        catalogue: Vocabulary of the counts.
    """
    possible = _possible(catalogue)
    noised = np.frombuffer(content, np.float32).reshape(possible.shape)
    count, logarithm = np.zeros(noised.shape), np.full(noised.shape, np.log(SMOOTHING))
    expected = expect_all(noised[possible].tobytes(), noise)
    count[possible], logarithm[possible] = expected.count, expected.logarithm
    if own:
        part = np.frombuffer(own, np.float32).reshape(noised.shape)
        touched = np.nonzero(part * possible)
        others = expect(noised[touched] - part[touched], fit_prior(noised[possible].tobytes(), noise), noise)
        count[touched], logarithm[touched] = others.count, others.logarithm
    return _offset(count, logarithm)


@lru_cache(maxsize=4)
def _possible(catalogue: RuleCatalogue) -> Flags:
    """Return the mask of the counts that rules of the vocabulary can have, 2 × F × R."""
    return np.stack(catalogue.possible())
