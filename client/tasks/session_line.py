"""A person's own history as features of items: the local line that the default session model stands on; private."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from common.models.blend import FEATURES
from common.tasks.session_rules import SharedRules
from common.tasks.sessions import Clicks

FADING = 0.8
"""Weight of a click by how many clicks ago it was: .8^age."""

Known = dict[int, list[float]]
"""Item -> its features."""


@dataclass(frozen=True)
class History:
    """How often a person visited each item, and each item right after another."""

    visits: Counter[int]
    pairs: Counter[tuple[int, int]]

    @classmethod
    def of(cls, sessions: Sequence[Clicks]) -> "History":
        """Count over a person's sessions."""
        visits: Counter[int] = Counter()
        pairs: Counter[tuple[int, int]] = Counter()
        for session in sessions:
            clicks = session.tolist()
            visits.update(clicks)
            pairs.update(pairwise(clicks))
        return cls(visits, pairs)

    def without(self, session: Clicks) -> "History":
        """The history as it was before this session, so that a training example does not tell its own answer."""
        own = History.of([session])
        return History(self.visits - own.visits, self.pairs - own.pairs)


def features(prefix: Clicks, history: History, rules: SharedRules | None = None) -> Known:
    """What the local line knows of items, given the clicks so far (see `common.models.blend.FEATURES`)."""
    known: Known = {}

    def note(item: int, feature: int, amount: float) -> None:
        known.setdefault(item, [0.0] * len(FEATURES))[feature] = amount

    last = int(prefix[-1])
    for item, count in history.visits.items():
        note(item, 0, float(np.log1p(count)))
        if followed := history.pairs.get((last, item)):
            note(item, 1, float(np.log1p(followed)))
    for age, item in reversed(list(enumerate(reversed(prefix.tolist())))):
        note(item, 2, FADING**age)
    note(last, 3, 1.0)
    for item, score in rules.scores(prefix) if rules else ():
        note(item, 4, float(np.log1p(score)))
    return known


def pad(rows: Sequence[Known]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Items E × M and their features E × M × F, zero-padded to the row that knows most."""
    most = max((len(row) for row in rows), default=1)
    index = np.zeros((len(rows), most), np.int64)
    value = np.zeros((len(rows), most, len(FEATURES)), np.float32)
    for e, row in enumerate(rows):
        if row:
            index[e, : len(row)], value[e, : len(row)] = list(row), list(row.values())
    return index, value
