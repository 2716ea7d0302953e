"""Ranking metrics; pure NumPy. Ties count as if broken at random: every metric is the mean over all their orders."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]


def auc(scores: Scores, labels: NDArray[Any]) -> float | None:
    """Area under the ROC curve, P(positive scores above negative) + ½ P(they tie); None if a class is missing.

    Shapes:
        scores (n,), labels (n,) of 0 and 1.
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
    """Mean 0-based rank of each row's target among that row's other candidates.

    Shapes:
        scores (n, c), targets (n,) column of the one that is right, excluded (n, c) True where a candidate does not
        compete; a target itself always does.
    """
    own = np.take_along_axis(scores, targets[:, None], axis=1)
    rivals = np.ones(scores.shape, dtype=bool) if excluded is None else ~excluded
    rivals[np.arange(len(targets)), targets] = False
    above = ((scores > own) & rivals).sum(axis=1)
    level = ((scores == own) & rivals).sum(axis=1)
    return float((above + level / 2).mean())


def hit_rates(scores: Scores, positive: Mask, tops: Sequence[int], total: int | None = None) -> list[float]:
    """|top-n ∩ positives| / |positives| for every n in `tops`, which ascend.

    Shapes:
        scores (m,) of all candidates, positive (m,); `total` is |positives| if some of them are no candidates.
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
    above, level = scores > threshold, scores == threshold
    chance = (top - above.sum()) / level.sum()
    return float(positive[above].sum() + chance * positive[level].sum())


def _nth_largest(scores: Scores, n: int) -> float:
    return float(np.partition(scores, len(scores) - n)[len(scores) - n])
