"""Order of candidates: best first, without some, diversified on request."""

import numpy as np

from common.arrays import Array, Flags, Floats, Ints

POOL = 10
"""Number of candidates per shown one among which diversification chooses."""


def best_first(scores: Array, allowed: Flags) -> Ints:
    """Return the flat indices of the allowed candidates, best first; ties by index, NaN left out."""
    values = scores.ravel()
    candidates = np.flatnonzero(allowed.ravel() & ~np.isnan(values))
    ordered: Ints = candidates[np.argsort(-values[candidates], kind="stable")]
    return ordered


def first_of_each(groups: Ints) -> Ints:
    """Return the place of the first member of each group, ascending."""
    return np.sort(np.unique(groups, return_index=True)[1])


def diversify(similarity: Floats, weight: float, top: int) -> Ints:
    """Choose `top` of n ranked candidates by maximal marginal relevance on ranks.

    The method is that of Carbonell & Goldstein (1998). Each step takes the candidate with the largest
    λ·(1 − rank/n) − (1 − λ)·(largest similarity to a chosen one); ties by rank.

    Args:
        similarity: Similarity in [0, 1] of the candidates in the order of their ranks, n × n.
        weight: Weight λ of the rank in [0, 1]; 1 keeps the order.
        top: Number of candidates to choose.
    """
    count = len(similarity)
    relevance, nearest = 1 - np.arange(count) / max(count, 1), np.zeros(count)
    chosen: list[int] = []
    for _ in range(min(top, count)):
        values = weight * relevance - (1 - weight) * nearest
        values[chosen] = -np.inf
        chosen.append(int(values.argmax()))
        nearest = np.maximum(nearest, similarity[chosen[-1]])
    return np.array(chosen, np.int64)


def two_digits(score: float) -> float:
    """Round a score to two digits after the decimal point, or to two significant ones below a tenth."""
    return round(score, 2) if abs(score) >= 0.1 else float(f"{score:.2g}")
