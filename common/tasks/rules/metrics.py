"""Ranking metrics of rule recommendation in one home (algorithms.md §1.5); tied scores are averaged."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.arrays import Flags, Floats
from common.tasks.rules.vocabulary import Edges

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
    total, right = int(positive.sum()) if total is None else total, scores[positive]
    above, tied = (np.array([compare(scores, each).sum() for each in right]) for compare in (np.greater, np.equal))
    return [float(np.clip((min(top, len(scores)) - above) / tied, 0, 1).sum()) / total for top in tops]


TOPS = (5, 10, 20, 40)
SHOWN_TOPS, SHORT = (5, 10, 20), 10
SHOWN_LISTS = (SHORT, SHOWN_TOPS[-1])
"""Lengths of the lists that are measured: a short one, and the longest."""

KEYS = ("loss", "auc", "mr0", "mr1", "mr_rt", *(f"hr{top}" for top in TOPS))


def home_metrics(
    logits: NDArray[np.floating[Any]],
    train: Edges,
    positives: Edges,
    negatives: Edges,
    *,
    self_pairs: bool = False,
    valid: Mask | None = None,
) -> dict[str, float] | None:
    """Compute the metrics `KEYS` of one home; None if it has no test rule.

    `mr0` is the 0-based rank of a test rule's relation among all relations of its pair; `mr1` = `mr0` + 1. `mr_rt` leaves
    out relations that the pair has in training. `hrN` ranks all candidates of the home. A test rule that is not a candidate
    (its pair is one node, or it is not `valid`) is a miss. `auc` is absent without negatives. If a logit is NaN (diverged
    model), all metrics are NaN.

    Args:
        logits: Log-odds of rules (trigger node, action node, relation), (N, N, R).
        train: Training rules; they are not candidates.
        positives: Test rules.
        negatives: Sampled non-rules.
        self_pairs: True if rules within one node are candidates.
        valid: Rule filter, (N, N, R): only these rules are candidates.
    """
    if not len(positives):
        return None
    if np.isnan(logits).any():
        return dict.fromkeys(KEYS, float("nan"))
    right, wrong = _at(logits, positives), _at(logits, negatives)
    result = {"loss": float(np.logaddexp(0, np.concatenate([-right, wrong])).mean())}  # binary cross-entropy
    area = auc(np.concatenate([right, wrong]), np.repeat([1, 0], [len(right), len(wrong)]))
    if area is not None:
        result["auc"] = area
    result |= _ranks(logits, train, positives)
    return result | _hits(logits, train, positives, _candidates(logits.shape, train, self_pairs, valid))


def shown_metrics(logits: NDArray[np.floating[Any]], shown: Mapping[int, Edges], positives: Edges) -> dict[str, float]:
    """Return `hrN_shown`, the share of test rules in the home's list of N rules.

    If a logit is NaN, all are NaN.

    Args:
        logits: Log-odds of rules, (N, N, R).
        shown: Lists of rules as shown to the home, best first, by the lengths `SHOWN_LISTS`; the first begins the shorter ones.
        positives: Test rules.
    """
    lists = {top: shown[max(top, SHORT)][:top] for top in SHOWN_TOPS}
    return {f"hr{top}_shown": float(shown_hits(logits, rules, positives).mean()) for top, rules in lists.items()}


def shown_hits(logits: NDArray[np.floating[Any]], shown: Edges, positives: Edges) -> Floats:
    """Return 1 for each test rule that is shown to the home, else 0; NaN if a logit is NaN."""
    hits = (shown[:, None] == positives[None]).all(axis=2).any(axis=0)
    return np.where(np.isnan(logits).any(), np.nan, hits)


def _ranks(logits: Scores, train: Edges, positives: Edges) -> dict[str, float]:
    u, v, r = positives.T
    in_training = np.zeros(logits.shape, dtype=bool)
    in_training[tuple(train.T)] = True
    mr0 = mean_rank(logits[u, v], r)
    return {"mr0": mr0, "mr1": mr0 + 1, "mr_rt": mean_rank(logits[u, v], r, in_training[u, v])}


def _candidates(shape: tuple[int, ...], train: Edges, self_pairs: bool, valid: Mask | None) -> Mask:
    candidates = np.ones(shape, dtype=bool) if valid is None else valid.copy()
    candidates[tuple(train.T)] = False
    if not self_pairs:
        candidates[np.diag_indices(shape[0])] = False
    return candidates


def _hits(logits: Scores, train: Edges, positives: Edges, candidates: Mask) -> dict[str, float]:
    positive = np.zeros(logits.shape, dtype=bool)
    positive[tuple(positives.T)] = True
    rates = hit_rates(logits[candidates], positive[candidates], TOPS, len(positives))
    return {f"hr{top}": rate for top, rate in zip(TOPS, rates, strict=True)}


def _at(logits: Scores, edges: Edges) -> Scores:
    values: Scores = logits[tuple(edges.T)]
    return values
