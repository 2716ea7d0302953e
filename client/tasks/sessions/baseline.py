"""Item features from a visitor's own history, the private input of the default session model."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

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
        kept = np.repeat(is_chosen, self.counts)
        return FeatureRows(self.items[kept], self.values[kept], self.counts[is_chosen])

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


def _to_arrays(counts: Mapping[int, int]) -> tuple[Ints, Floats]:
    return np.fromiter(counts, np.int64, len(counts)), np.fromiter(counts.values(), np.float64, len(counts))
