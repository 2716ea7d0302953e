"""A person's own history as features of items: the local line that the default session model stands on; private."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from common.tasks.sessions.counts import FADING, SharedRules
from common.tasks.sessions.history_blend import FEATURES
from common.tasks.sessions.vocabulary import Clicks

_NO_ITEMS, _NO_SCORES = np.zeros(0, np.int64), np.zeros(0)


@dataclass(frozen=True)
class Known:
    """What the line knows: of M items, in ascending order, their F features (M × F); of the others nothing."""

    items: NDArray[np.int64]
    values: NDArray[np.float32]


@dataclass(frozen=True)
class VisitHistory:
    """How often a person visited each item, and each item right after another."""

    visits: Counter[int]
    pairs: Counter[tuple[int, int]]

    @classmethod
    def of(cls, sessions: Sequence[Clicks]) -> "VisitHistory":
        """Count over a person's sessions."""
        visits: Counter[int] = Counter()
        pairs: Counter[tuple[int, int]] = Counter()
        for session in sessions:
            clicks = session.tolist()
            visits.update(clicks)
            pairs.update(pairwise(clicks))
        return cls(visits, pairs)

    def without(self, session: Clicks) -> "VisitHistory":
        """The history as it was before this session, so that a training example does not tell its own answer."""
        own = VisitHistory.of([session])
        return VisitHistory(self.visits - own.visits, self.pairs - own.pairs)

    def after(self, item: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Items visited right after that one, and how often."""
        return _counted({later: count for (earlier, later), count in self.pairs.items() if earlier == item})


def features(prefix: Clicks, history: VisitHistory, rules: SharedRules | None = None) -> Known:
    """What the local line knows of items, given the clicks so far (see `common.tasks.sessions.history_blend.FEATURES`)."""
    last = prefix[-1:]
    visited, visits = _counted(history.visits)
    followed, follows = history.after(int(last[0]))
    recency = FADING ** np.arange(len(prefix))[::-1]
    shared, scores = rules.scores(prefix) if rules else (_NO_ITEMS, _NO_SCORES)
    columns = (
        (visited, np.log1p(visits)),
        (followed, np.log1p(follows)),
        (prefix, recency),  # of two clicks of an item the later one stays
        (last, np.ones(1)),
        (shared, np.log1p(scores)),
    )
    items, place = np.unique(np.concatenate([items for items, _ in columns]), return_inverse=True)
    values = np.zeros((len(items), len(FEATURES)), np.float32)
    first = 0
    for feature, (named, amounts) in enumerate(columns):
        values[place[first : first + len(named)], feature] = amounts
        first += len(named)
    return Known(items, values)


def pad(rows: Sequence[Known]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Items E × M and their features E × M × F, zero-padded to the row that knows most."""
    most = max((len(row.items) for row in rows), default=1)
    index = np.zeros((len(rows), most), np.int64)
    value = np.zeros((len(rows), most, len(FEATURES)), np.float32)
    for e, row in enumerate(rows):
        index[e, : len(row.items)], value[e, : len(row.items)] = row.items, row.values
    return index, value


def _counted(counts: Mapping[int, int]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    return np.fromiter(counts, np.int64, len(counts)), np.fromiter(counts.values(), np.float64, len(counts))
