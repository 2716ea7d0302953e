"""Baseline of sessions: item features from a visitor's other sessions, and ranks by them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from client.tasks.sessions.data.visitors import Case, SplitVisitor, cases_of
from common.arrays import Arrays, Floats, Floats32, Ints
from common.tasks.sessions import slist
from common.tasks.sessions.slist import FADING, FEATURES
from common.tasks.sessions.task import TASK, ranks
from common.tasks.sessions.task import Floats as Scores
from common.tasks.sessions.vocabulary import Clicks

_NO_ITEMS, _NO_SCORES = np.zeros(0, np.int64), np.zeros(0)


@dataclass(frozen=True)
class ItemFeatures:
    """Features of M items in ascending order, M × F; all other items have none."""

    items: Ints
    values: Floats32


@dataclass(frozen=True)
class FeatureRows:
    """Features of E cases in three arrays, which take less memory than arrays of each case.

    Args:
        items: Items of all cases.
        values: Their features, a row each.
        counts: Number of items of each case, E.
    """

    items: NDArray[np.int32]
    values: Floats32
    counts: Ints

    @classmethod
    def of(cls, rows: Iterable[ItemFeatures]) -> "FeatureRows":
        """Join the features of single cases."""
        cases = list(rows)
        items = np.concatenate([_NO_ITEMS, *(case.items for case in cases)]).astype(np.int32)
        values = np.concatenate([np.zeros((0, len(FEATURES)), np.float32), *(case.values for case in cases)])
        return cls(items, values, np.array([len(case.items) for case in cases], np.int64))

    def __getitem__(self, chosen: slice | NDArray[np.bool_]) -> "FeatureRows":
        """Return some cases, in their order."""
        is_chosen = np.zeros(len(self.counts), np.bool_)
        is_chosen[chosen] = True
        is_row = np.repeat(is_chosen, self.counts)
        return FeatureRows(self.items[is_row], self.values[is_row], self.counts[is_chosen])

    def pad(self) -> tuple[Ints, Floats32]:
        """Return items E × M and their features E × M × F, zero-padded to the longest case."""
        shape = (len(self.counts), int(self.counts.max()) if len(self.counts) else 1)
        index, value = np.zeros(shape, np.int64), np.zeros((*shape, len(FEATURES)), np.float32)
        is_real = np.arange(shape[1]) < self.counts[:, None]
        index[is_real], value[is_real] = self.items, self.values
        return index, value


@dataclass(frozen=True)
class VisitHistory:
    """Number of visits of each item, and of each pair of consecutive items, by one visitor."""

    visits: Counter[int]
    pairs: Counter[tuple[int, int]]

    @classmethod
    def of(cls, sessions: Sequence[Clicks]) -> "VisitHistory":
        """Count over a visitor's sessions."""
        clicks = [session.tolist() for session in sessions]
        return cls(Counter(chain.from_iterable(clicks)), Counter(chain.from_iterable(map(pairwise, clicks))))

    def without(self, session: Clicks) -> "VisitHistory":
        """Return the history without one session, to keep a training target out of its features."""
        removed = VisitHistory.of([session])
        return VisitHistory(self.visits - removed.visits, self.pairs - removed.pairs)

    def after(self, item: int) -> tuple[Ints, Floats]:
        """Return items visited right after an item, and the number of such visits."""
        return _to_arrays({later: count for (earlier, later), count in self.pairs.items() if earlier == item})


def scores_of(statics: Arrays) -> slist.Rows | None:
    """Return the scores that a run's closed form gives; None without one."""
    return slist.Rows.of(statics) if slist.is_solved(statics) else None


def history_features(prefix: Clicks, history: VisitHistory, rows: slist.Rows | None = None) -> ItemFeatures:
    """Compute features of items after the clicks `prefix`; see `slist.FEATURES`."""
    last = prefix[-1:]
    visited, visits = _to_arrays(history.visits)
    followed, follows = history.after(int(last[0]))
    recency = FADING ** np.arange(len(prefix))[::-1]
    shared, scores = rows.scores(prefix) if rows else (_NO_ITEMS, _NO_SCORES)
    columns = (
        (visited, np.log1p(visits)),
        (followed, np.log1p(follows)),
        (prefix, recency),  # a repeated item takes its last click
        (last, np.ones(1)),
        (shared, np.log1p(scores)),
    )
    items, index = np.unique(np.concatenate([items for items, _ in columns]), return_inverse=True)
    values = np.zeros((len(items), len(FEATURES)), np.float32)
    features = np.repeat(np.arange(len(columns)), [len(of_feature) for of_feature, _ in columns])
    values[index, features] = np.concatenate([amounts for _, amounts in columns])
    return ItemFeatures(items, values)


def _to_arrays(counts: Mapping[int, int]) -> tuple[Ints, Floats]:
    return np.fromiter(counts, np.int64, len(counts)), np.fromiter(counts.values(), np.float64, len(counts))


TOP = 20
"""Length of the lists by which visitors are compared."""

HISTORY_FIRST, SESSION_FIRST = (1.0, 1.0, 1.0), (1.0, 1.0, 100.0)
"""Weights of visits, follow-up visits and recency in the baseline: equal, or recency first."""

RECENCY = (0.0, 0.0, 1.0)
"""Weights of the baseline that ranks the session's items, the last click first."""

MOST_JUDGED = 200
"""Largest number of training clicks by which a visitor chooses the weights: the last ones."""


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


def by_visitor(values: Floats, splits: Sequence[SplitVisitor], part: str) -> list[Floats]:
    """Return the values of each visitor's cases."""
    ends = np.cumsum([len(held_out(split, part)) for split in splits])
    return np.split(values, ends[:-1]) if splits else []


def own_weights(sessions: Sequence[Clicks]) -> Sequence[float]:
    """Return the weights of a visitor's baseline that rank its own sessions better.

    A session is not part of the history by which it is ranked.
    """
    history, judged = VisitHistory.of(sessions), [0, 0]
    cases = [(case, session) for session in reversed(sessions) for case in cases_of(session)][:MOST_JUDGED]
    for case, session in cases:
        features = history_features(case.prefix, history.without(session))
        for k, weights in enumerate((HISTORY_FIRST, SESSION_FIRST)):
            judged[k] += is_hit(features, weights, case.target)
    return SESSION_FIRST if judged[1] > judged[0] else HISTORY_FIRST


def is_hit(features: ItemFeatures, weights: Sequence[float], target: int) -> bool:
    """Return True if an item with a score is among the first `TOP`; the mean rank of ties counts."""
    scores = features.values[:, : len(weights)] @ np.array(weights, np.float32)
    [mine] = scores[features.items == target] if target in features.items else [0.0]
    return bool(mine > 0 and (scores > mine).sum() + ((scores == mine).sum() + 1) / 2 <= TOP)


def history_scores(prefix: Clicks, sessions: Sequence[Clicks], items: int, baseline: str) -> Floats:
    """Return the scores of all items by a named baseline; 0 for items that the visitor never clicked."""
    features, scores = history_features(prefix, VisitHistory.of(sessions)), np.zeros(items)
    weights = own_weights(sessions) if baseline == next(iter(TASK.baselines)) else RECENCY
    scores[features.items] = features.values[:, : len(weights)] @ np.array(weights, np.float32)
    return scores


def baseline_hits(splits: Sequence[SplitVisitor], part: str) -> tuple[Floats, Floats]:
    """Return for each case if the target is a hit of the visitor's own history, and of recency."""
    hits = []
    for split in splits:
        history, weights = VisitHistory.of(split.train), own_weights(split.train)
        for case in held_out(split, part):
            features = history_features(case.prefix, history)
            hits.append((is_hit(features, weights, case.target), is_hit(features, RECENCY, case.target)))
    by_history, by_recency = np.array(hits, float).reshape(-1, 2).T
    return by_history, by_recency
