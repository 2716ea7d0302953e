"""Ranks of held-out items: by scores of a model, and by a visitor's own history alone."""

from collections.abc import Iterator, Sequence

import numpy as np

from client.tasks.sessions.baseline import VisitHistory, history_features
from client.tasks.sessions.data.split import SplitVisitor
from client.tasks.sessions.data.visitors import Case
from common.arrays import Floats, Ints
from common.tasks.sessions.metrics import Floats as Scores
from common.tasks.sessions.metrics import ranks
from common.tasks.sessions.vocabulary import Clicks

TOP = 20
"""Length of the lists by which visitors are compared."""

OWN_FEATURES = 3
"""Number of features of `history_features` in the baseline: visits, follow-up visits, recency."""


def held_out(split: SplitVisitor, part: str) -> tuple[Case, ...]:
    """Return the cases of a visitor in the test or the validation split."""
    return split.test if part == "test" else split.validation


def compute_ranks(chunks: Iterator[Scores], targets: Ints) -> tuple[Scores, Scores]:
    """Return the rank of each target and −log of its probability."""
    places: list[Scores] = [np.zeros(0)]
    losses: list[Scores] = [np.zeros(0)]
    first = 0
    for logits in chunks:
        block_targets = targets[first : first + len(logits)]
        first += len(logits)
        places.append(ranks(logits, block_targets))
        log_sum = np.logaddexp.reduce(logits.astype(np.float64), axis=1)
        losses.append(log_sum - logits[np.arange(len(block_targets)), block_targets])
    return np.concatenate(places), np.concatenate(losses)


def visitor_means(values: Floats, splits: Sequence[SplitVisitor], part: str) -> Floats:
    """Return the mean over each visitor's cases; NaN without cases."""
    ends = np.cumsum([len(held_out(split, part)) for split in splits])
    return np.array([row.mean() if len(row) else np.nan for row in np.split(values, ends[:-1])])


def history_scores(prefix: Clicks, history: VisitHistory, items: int) -> Floats:
    """Return the scores of all items by a visitor's own clicks; 0 for items that it never clicked."""
    features, scores = history_features(prefix, history), np.zeros(items)
    scores[features.items] = features.values[:, :OWN_FEATURES].sum(axis=1)
    return scores


def history_hits(splits: Sequence[SplitVisitor], part: str, items: int) -> Floats:
    """Return for each case if the target is among the first `TOP` items of the visitor's own history."""
    hits = []
    for split in splits:
        history = VisitHistory.of(split.train)
        for case in held_out(split, part):
            scores = history_scores(case.prefix, history, items)
            hits.append(ranks(scores[None], np.array([case.target]))[0] <= TOP)
    return np.array(hits, float)
