"""The local line of the rules task: what counts alone say about a rule.

With C₁[f, r] (C₂) the number of training rules of relation r whose trigger (action) device is of type f, and C[r] their
total, rules on a pair of types (f, g) are about C₁[f,r]·C₂[g,r]/C[r] times as likely as chance. The logarithm splits into one
term a device, which is what the model adds to its own.
"""

from collections.abc import Sequence
from functools import reduce

import numpy as np

from common.arrays import Array, Arrays, add, check_like
from common.tasks.rules.vocabulary import RuleCatalogue

COUNTS = "counts"
"""Name of the summed counts among a message's arrays, 2 × F × R."""

SMOOTHING = 0.1
"""Rules added to every count, so that what was never seen is unlikely, not impossible."""


def check_counts(counts: Arrays, catalogue: RuleCatalogue) -> None:
    """Accept a client's counts.

    Raises:
        WireError: They have other names, shapes or types than 2 × F × R of float32.
    """
    shape = (2, len(catalogue.entities), len(catalogue.relations))
    check_like(counts, {COUNTS: np.zeros(shape, np.float32)}, "counts")


def add_counts(parts: Sequence[Arrays]) -> Arrays:
    """Return the sum of several clients' counts."""
    return reduce(add, parts)


def offset_of(counts: Array | None, catalogue: RuleCatalogue) -> Array:
    """Logits 2 × F × R: log(C₁ + s) − ½log(C + s) and log(C₂ + s) − ½log(C + s); zeros where there are no counts."""
    if counts is None:
        return np.zeros((2, len(catalogue.entities), len(catalogue.relations)), np.float32)
    counts = np.maximum(counts, 0)
    totals = counts.sum(axis=1, keepdims=True)
    offset: Array = np.log(counts + SMOOTHING) - 0.5 * np.log(totals + SMOOTHING)
    return offset.astype(np.float32)
