"""Ranking metrics of rule recommendation in one home (algorithms.md §1.5); tied scores are averaged."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from common.arrays import Flags, Floats, Ints
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


def ranks(scores: Scores, targets: NDArray[np.integer[Any]], excluded: Mask) -> tuple[Floats, Floats]:
    """Return the 0-based rank of each row's target, and that with some candidates left out, (n,) each.

    Args:
        scores: Scores of the candidates, (n, c).
        targets: Column of the right candidate, (n,).
        excluded: True for candidates left out of a row's second ranking, (n, c); the target is never left out.
    """
    rows = np.arange(len(targets))
    ahead = _wins(scores, scores[rows, targets][:, None])
    ahead[rows, targets] = 0
    return ahead.sum(axis=1), (ahead * ~excluded).sum(axis=1)


def _wins(first: Scores, second: Scores) -> Floats:
    """Return 1 where the first score is larger, ½ where both are equal, else 0."""
    return np.asarray((first > second) + (first == second) / 2)


def hit_rates(scores: Scores, right: Scores, tops: Sequence[int], total: int) -> list[float]:
    """Return |top-n ∩ positives| / |positives| for every n in `tops`.

    Args:
        scores: Scores of all candidates, (m,); NaN is none.
        right: Scores of the positives among them.
        tops: Values of n, ascending.
        total: |positives|; some may not be among the candidates.
    """
    above, tied = (
        np.array([np.count_nonzero(compare(scores, each)) for each in right]) for compare in (np.greater, np.equal)
    )
    count = np.count_nonzero(~np.isnan(scores))
    return [float(np.clip((min(top, count) - above) / tied, 0, 1).sum()) / total for top in tops]


TOPS = (5, 10, 20, 40)
SHOWN_TOPS, SHORT = (5, 10, 20), 10
SHOWN_LISTS = (SHORT, SHOWN_TOPS[-1])
"""Lengths of the lists that are measured: a short one, and the longest."""

KEYS = ("loss", "auc", "mr0", "mr1", "mr_rt", *(f"hr{top}" for top in TOPS))


class Ranked(NamedTuple):
    """Home whose possible rules are ranked.

    Args:
        logits: Log-odds of rules (trigger node, action node, relation), (N, N, R).
        train: Training rules; they are not candidates.
        positives: Test rules, at least one.
        negatives: Sampled non-rules.
    """

    logits: NDArray[np.floating[Any]]
    train: Edges
    positives: Edges
    negatives: Edges


def home_metrics(
    logits: NDArray[np.floating[Any]],
    train: Edges,
    positives: Edges,
    negatives: Edges,
    *,
    self_pairs: bool = False,
    valid: Mask | None = None,
) -> dict[str, float] | None:
    """Compute the metrics of one home as `metrics_together` does; None if it has no test rule."""
    homes = [Ranked(logits, train, positives, negatives)] if len(positives) else []
    return next(iter(metrics_together(homes, self_pairs=self_pairs, valid=valid)), None)


def metrics_together(
    homes: Sequence[Ranked], *, self_pairs: bool = False, valid: Mask | None = None
) -> list[dict[str, float]]:
    """Compute the metrics `KEYS` of each home.

    `mr0` is the 0-based rank of a test rule's relation among all relations of its pair; `mr1` = `mr0` + 1. `mr_rt` leaves
    out relations that the pair has in training. `hrN` ranks all candidates of the home. A test rule that is not a candidate
    (its pair is one node, or it is not `valid`) is a miss. `auc` is absent without negatives. If a logit is NaN (diverged
    model), all metrics are NaN.

    Args:
        homes: Homes with equally many relations.
        self_pairs: True if rules within one node are candidates.
        valid: Rule filter of one home, (N, N, R): only these rules are candidates.
    """
    if not homes:
        return []
    flat = np.concatenate([home.logits.ravel() for home in homes])
    starts = np.cumsum([0, *(home.logits.size for home in homes)])
    (train, _), (right, of_right), (wrong, of_wrong) = (_places(homes, kind, starts) for kind in _KINDS)
    relations = homes[0].logits.shape[2]
    trained = np.zeros(flat.size, bool)
    trained[train] = True
    rows = (right - right % relations)[:, None] + np.arange(relations)
    with np.errstate(invalid="ignore"):  # NaN of diverged models
        losses = np.logaddexp(0, np.concatenate([-flat[right], flat[wrong]])), np.concatenate([of_right, of_wrong])
    values = [losses, *((found, of_right) for found in ranks(flat[rows], right % relations, trained[rows]))]
    means = np.array([np.bincount(of, one, len(homes)) / np.bincount(of, minlength=len(homes)) for one, of in values])
    candidates = np.where(trained if valid is None else trained | ~valid.ravel(), np.nan, flat)
    pieces = [
        np.split(one, np.searchsorted(of, np.arange(1, len(homes))))
        for one, of in ((flat[right], of_right), (flat[wrong], of_wrong))
    ]
    found = []
    for home, scores, (loss, mr0, mr_rt), right_scores, wrong_scores in zip(
        homes, np.split(candidates, starts[1:-1]), means.T.tolist(), *pieces, strict=True
    ):
        result = {"loss": loss, "mr0": mr0, "mr1": mr0 + 1, "mr_rt": mr_rt}
        result |= _of_scores(
            scores.reshape(home.logits.shape), home.positives, right_scores, wrong_scores, self_pairs=self_pairs
        )
        found.append(dict.fromkeys(KEYS, float("nan")) if np.isnan(home.logits).any() else result)
    return found


def _of_scores(scores: Scores, positives: Edges, right: Scores, wrong: Scores, *, self_pairs: bool) -> dict[str, float]:
    """Return `auc` and hit rates of a home by the scores of candidates, NaN for others; it changes them."""
    if not self_pairs:
        scores[np.diag_indices(len(scores))] = np.nan
    area = auc(np.concatenate([right, wrong]), np.arange(len(right) + len(wrong)) < len(right))
    ranked = scores[tuple(positives.T)]
    rates = hit_rates(scores.ravel(), ranked[~np.isnan(ranked)], TOPS, len(right))
    hits = {f"hr{top}": rate for top, rate in zip(TOPS, rates, strict=True)}
    return hits if area is None else {"auc": area, **hits}


_KINDS = ("train", "positives", "negatives")


def _places(homes: Sequence[Ranked], kind: str, starts: Ints) -> tuple[Ints, Ints]:
    """Return the places of homes' rules of a kind among the logits of all, and the homes' numbers."""
    edges = [getattr(home, kind) for home in homes]
    of, (u, v, r) = np.repeat(np.arange(len(homes)), list(map(len, edges))), np.concatenate(edges).T
    nodes, relations = np.array([len(home.logits) for home in homes]), homes[0].logits.shape[2]
    return starts[of] + (u * nodes[of] + v) * relations + r, of


def shown_metrics(logits: NDArray[np.floating[Any]], shown: Mapping[int, Edges], positives: Edges) -> dict[str, float]:
    """Return `hrN_shown`, the share of test rules in the home's list of N rules.

    If a logit is NaN, all are NaN.

    Args:
        logits: Log-odds of rules, (N, N, R).
        shown: Lists of rules as shown to the home, best first, by the lengths `SHOWN_LISTS`; the first begins the shorter ones.
        positives: Test rules.
    """
    is_unknown = np.isnan(logits).any()
    hits = {top: float(_are_in(shown[max(top, SHORT)][:top], positives).mean()) for top in SHOWN_TOPS}
    return {f"hr{top}_shown": float("nan") if is_unknown else share for top, share in hits.items()}


def shown_hits(logits: NDArray[np.floating[Any]], shown: Edges, positives: Edges) -> Floats:
    """Return 1 for each test rule that is shown to the home, else 0; NaN if a logit is NaN."""
    return np.where(np.isnan(logits).any(), np.nan, _are_in(shown, positives))


def _are_in(shown: Edges, positives: Edges) -> Mask:
    listed = {tuple(rule) for rule in shown.tolist()}
    return np.array([tuple(rule) in listed for rule in positives.tolist()], bool)
