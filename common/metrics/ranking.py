"""Ranking metrics; pure NumPy. Each metric is the mean over all orders of tied scores."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.arrays import Flags

Scores = NDArray[np.floating[Any]]
Mask = Flags


def auc(scores: Scores, labels: NDArray[Any]) -> float | None:
    """Return the area under the ROC curve, P(positive > negative) + ½ P(tie); None if a class is missing.

    Args:
        scores: Scores, (n,).
        labels: Labels 0 or 1, (n,).
    """
    positive = np.asarray(labels, dtype=bool)
    positives, negatives = int(positive.sum()), int((~positive).sum())
    if not positives or not negatives:
        return None
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    midrank = np.cumsum(counts) - (counts - 1) / 2
    wins = midrank[inverse][positive].sum() - positives * (positives + 1) / 2
    return float(wins / (positives * negatives))


def mean_rank(scores: Scores, targets: NDArray[np.integer[Any]], excluded: Mask | None = None) -> float:
    """Return the mean 0-based rank of each row's target among the row's other candidates.

    Args:
        scores: Scores of the candidates, (n, c).
        targets: Column of the right candidate, (n,).
        excluded: True for candidates left out of a row's ranking, (n, c); the target is never left out.
    """
    target_scores = np.take_along_axis(scores, targets[:, None], axis=1)
    rivals = np.ones(scores.shape, dtype=bool) if excluded is None else ~excluded
    rivals[np.arange(len(targets)), targets] = False
    above = ((scores > target_scores) & rivals).sum(axis=1)
    tied = ((scores == target_scores) & rivals).sum(axis=1)
    return float((above + tied / 2).mean())


def hit_rates(scores: Scores, positive: Mask, tops: Sequence[int], total: int | None = None) -> list[float]:
    """Return |top-n ∩ positives| / |positives| for every n in `tops`.

    Args:
        scores: Scores of all candidates, (m,).
        positive: True for positives, (m,).
        tops: Values of n, ascending.
        total: |positives| if some positives are not among the candidates.
    """
    total = int(positive.sum()) if total is None else total
    largest = min(tops[-1], len(scores))
    if largest == 0:
        return [0.0 for _ in tops]
    contenders = scores >= _nth_largest(scores, largest)
    scores, positive = scores[contenders], positive[contenders]
    return [_expected_hits(scores, positive, min(top, largest)) / total for top in tops]


def _expected_hits(scores: Scores, positive: Mask, top: int) -> float:
    threshold = _nth_largest(scores, top)
    above, tied = scores > threshold, scores == threshold
    probability = (top - above.sum()) / tied.sum()
    return float(positive[above].sum() + probability * positive[tied].sum())


def _nth_largest(scores: Scores, n: int) -> float:
    return float(np.partition(scores, len(scores) - n)[len(scores) - n])
