"""Prior scores of the rules task from counts of relations by device type.

C₁[f, r] (C₂[f, r]) is the number of training rules of relation r whose trigger (action) device has type f; C[r] is their
total. A rule between types (f, g) is about C₁[f,r]·C₂[g,r]/C[r] times as likely as by chance. The logarithm is a sum of one
term per device; the model adds these terms to its output.
"""

from collections.abc import Sequence
from functools import reduce

import numpy as np

from common.arrays import Array, Arrays, add, check_like
from common.tasks.rules.vocabulary import RuleCatalogue

COUNTS = "counts"
"""Name of the summed counts in the arrays of a message, 2 × F × R."""

SMOOTHING = 0.1
"""s: added to every count; unseen combinations become unlikely, not impossible."""


def check_counts(counts: Arrays, catalogue: RuleCatalogue) -> None:
    """Check a client's counts.

    Raises:
        WireError: The counts are not one array `counts` of shape 2 × F × R and type float32.
    """
    shape = (2, len(catalogue.entities), len(catalogue.relations))
    check_like(counts, {COUNTS: np.zeros(shape, np.float32)}, "counts")


def add_counts(parts: Sequence[Arrays]) -> Arrays:
    """Return the sum of several clients' counts."""
    return reduce(add, parts)


def offset_of(counts: Array | None, catalogue: RuleCatalogue) -> Array:
    """Return logits 2 × F × R: log(C_i + s) − ½log(C + s) for i = 1, 2; zeros without counts."""
    if counts is None:
        return np.zeros((2, len(catalogue.entities), len(catalogue.relations)), np.float32)
    counts = np.maximum(counts, 0)
    totals = counts.sum(axis=1, keepdims=True)
    offset: Array = np.log(counts + SMOOTHING) - 0.5 * np.log(totals + SMOOTHING)
    return offset.astype(np.float32)
