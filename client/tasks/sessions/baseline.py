"""Item features from a visitor's own history, the private input of the default session model."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from common.arrays import Floats, Floats32, Ints
from common.tasks.sessions.counts import FADING, SharedRules
from common.tasks.sessions.features import FEATURES
from common.tasks.sessions.vocabulary import Clicks

_NO_ITEMS, _NO_SCORES = np.zeros(0, np.int64), np.zeros(0)


@dataclass(frozen=True)
class ItemFeatures:
    """Features of M items in ascending order, M × F; all other items have none."""

    items: Ints
    values: Floats32


@dataclass(frozen=True)
class VisitHistory:
    """Number of visits of each item, and of each pair of consecutive items, by one visitor."""

    visits: Counter[int]
    pairs: Counter[tuple[int, int]]

    @classmethod
    def of(cls, sessions: Sequence[Clicks]) -> "VisitHistory":
        """Count over a visitor's sessions."""
        visits: Counter[int] = Counter()
        pairs: Counter[tuple[int, int]] = Counter()
        for session in sessions:
            clicks = session.tolist()
            visits.update(clicks)
            pairs.update(pairwise(clicks))
        return cls(visits, pairs)

    def without(self, session: Clicks) -> "VisitHistory":
        """Return the history without one session, to keep a training target out of its features."""
        removed = VisitHistory.of([session])
        return VisitHistory(self.visits - removed.visits, self.pairs - removed.pairs)

    def after(self, item: int) -> tuple[Ints, Floats]:
        """Return items visited right after an item, and the number of such visits."""
        return _to_arrays({later: count for (earlier, later), count in self.pairs.items() if earlier == item})


def history_features(prefix: Clicks, history: VisitHistory, rules: SharedRules | None = None) -> ItemFeatures:
    """Compute features of items after the clicks `prefix`; see `features.FEATURES`.

    Args:
        prefix: Clicks of the session so far, at least one.
        history: Earlier visits of the visitor.
        rules: Summed sequential rules, if counts are shared.
    """
    last = prefix[-1:]
    visited, visits = _to_arrays(history.visits)
    followed, follows = history.after(int(last[0]))
    recency = FADING ** np.arange(len(prefix))[::-1]
    shared, scores = rules.scores(prefix) if rules else (_NO_ITEMS, _NO_SCORES)
    columns = (
        (visited, np.log1p(visits)),
        (followed, np.log1p(follows)),
        (prefix, recency),  # a repeated item takes its last click
        (last, np.ones(1)),
        (shared, np.log1p(scores)),
    )
    items, place = np.unique(np.concatenate([items for items, _ in columns]), return_inverse=True)
    values = np.zeros((len(items), len(FEATURES)), np.float32)
    first = 0
    for feature, (feature_items, amounts) in enumerate(columns):
        values[place[first : first + len(feature_items)], feature] = amounts
        first += len(feature_items)
    return ItemFeatures(items, values)


def pad(rows: Sequence[ItemFeatures]) -> tuple[Ints, Floats32]:
    """Return items E × M and their features E × M × F, zero-padded to the longest row."""
    width = max((len(row.items) for row in rows), default=1)
    index = np.zeros((len(rows), width), np.int64)
    value = np.zeros((len(rows), width, len(FEATURES)), np.float32)
    for e, row in enumerate(rows):
        index[e, : len(row.items)], value[e, : len(row.items)] = row.items, row.values
    return index, value


def _to_arrays(counts: Mapping[int, int]) -> tuple[Ints, Floats]:
    return np.fromiter(counts, np.int64, len(counts)), np.fromiter(counts.values(), np.float64, len(counts))
