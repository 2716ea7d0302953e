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
    right, wrong = scores[positive], scores[~positive]
    return float(_wins(right[:, None], wrong).sum() / (len(right) * len(wrong))) if len(right) and len(wrong) else None


def mean_ranks(scores: Scores, targets: NDArray[np.integer[Any]], excluded: Mask) -> tuple[float, float]:
    """Return the mean 0-based rank of each row's target, and that with some candidates left out.

    Args:
        scores: Scores of the candidates, (n, c).
        targets: Column of the right candidate, (n,).
        excluded: True for candidates left out of a row's second ranking, (n, c); the target is never left out.
    """
    rows = np.arange(len(targets))
    ahead = _wins(scores, scores[rows, targets][:, None])
    ahead[rows, targets] = 0
    return float(ahead.sum(axis=1).mean()), float((ahead * ~excluded).sum(axis=1).mean())


def _wins(first: Scores, second: Scores) -> Floats:
    """Return 1 where the first score is larger, ½ where both are equal, else 0."""
    return np.asarray((first > second) + (first == second) / 2)


def hit_rates(scores: Scores, right: Scores, tops: Sequence[int], total: int) -> list[float]:
    """Return |top-n ∩ positives| / |positives| for every n in `tops`.

    Args:
        scores: Scores of all candidates, (m,).
        right: Scores of the positives among them.
        tops: Values of n, ascending.
        total: |positives|; some may not be among the candidates.
    """
    above, tied = (
        np.array([np.count_nonzero(compare(scores, each)) for each in right]) for compare in (np.greater, np.equal)
    )
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
    right, wrong = (logits[tuple(edges.T)] for edges in (positives, negatives))
    result = {"loss": float(np.logaddexp(0, np.concatenate([-right, wrong])).mean())}  # binary cross-entropy
    area = auc(np.concatenate([right, wrong]), np.repeat([1, 0], [len(right), len(wrong)]))
    result |= {} if area is None else {"auc": area}
    trained = np.zeros(logits.shape, dtype=bool)
    trained[tuple(train.T)] = True
    u, v, r = positives.T
    mr0, mr_rt = mean_ranks(logits[u, v], r, trained[u, v])
    candidates = ~trained if valid is None else valid & ~trained
    if not self_pairs:
        candidates[np.diag_indices(len(logits))] = False
    rates = hit_rates(logits[candidates], right[candidates[u, v, r]], TOPS, len(positives))
    hits = {f"hr{top}": rate for top, rate in zip(TOPS, rates, strict=True)}
    return {**result, "mr0": mr0, "mr1": mr0 + 1, "mr_rt": mr_rt, **hits}


def shown_metrics(logits: NDArray[np.floating[Any]], shown: Mapping[int, Edges], positives: Edges) -> dict[str, float]:
    """Return `hrN_shown`, the share of test rules in the home's list of N rules.

    If a logit is NaN, all are NaN.

    Args:
        logits: Log-odds of rules, (N, N, R).
        shown: Lists of rules as shown to the home, best first, by the lengths `SHOWN_LISTS`; the first begins the shorter ones.
        positives: Test rules.
    """
    hits = {top: _are_in(shown[max(top, SHORT)][:top], positives).mean() for top in SHOWN_TOPS}
    is_unknown = np.isnan(logits).any()
    return {f"hr{top}_shown": float("nan") if is_unknown else float(share) for top, share in hits.items()}


def shown_hits(logits: NDArray[np.floating[Any]], shown: Edges, positives: Edges) -> Floats:
    """Return 1 for each test rule that is shown to the home, else 0; NaN if a logit is NaN."""
    return np.where(np.isnan(logits).any(), np.nan, _are_in(shown, positives))


def _are_in(shown: Edges, positives: Edges) -> Mask:
    return np.asarray((shown[:, None] == positives[None]).all(axis=2).any(axis=0))
