"""Baselines of next-item recommendation that need no network; some need no federation either.

Each maps (clicks so far, index of the visitor) to scores of all items, V; higher is better.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from client.tasks.sessions.baseline import VisitHistory
from client.tasks.sessions.data.visitors import SplitVisitor
from common.arrays import Array
from common.tasks.sessions.slist import FADING
from common.tasks.sessions.vocabulary import Clicks

Scores = NDArray[np.float64]
Baseline = Callable[[Clicks, int], Scores]
"""(clicks so far, index of the visitor) -> scores."""

NEIGHBOURS = 200

MAX_RULE_ITEMS = 200
"""Maximum number of items that a session's rules score; more cost time and do not change the ranking."""


def count_rules(sessions: Iterable[Clicks], items: int) -> "SharedRules":
    """Count sequential rules i → j: each ordered pair of clicks adds 1/distance (Ludewig & Jannach 2018)."""
    counts: defaultdict[int, float] = defaultdict(float)
    for session in sessions:
        clicks = session.tolist()
        for number, later in enumerate(clicks):
            for distance, earlier in enumerate(reversed(clicks[:number]), start=1):
                counts[earlier * items + later] += 1 / distance
    keys = np.array(sorted(counts), np.int64)
    return SharedRules(keys, np.array([counts[int(key)] for key in keys], np.float32), items)


@dataclass(frozen=True)
class SharedRules:
    """Counts of sequential rules by sorted keys i·V + j, with look-up by a session's clicks."""

    keys: Array
    values: Array
    items: int

    def scores(self, prefix: Clicks) -> tuple[Array, Array]:
        """Return the items of highest score and their scores Σ .8^age · rule(click → item)."""
        ranges: list[Array] = []
        scores: list[Array] = []
        for age, item in enumerate(reversed(prefix.tolist())):
            first, last = np.searchsorted(self.keys, (item * self.items, (item + 1) * self.items))
            ranges.append(self.keys[first:last] - item * self.items)
            scores.append(self.values[first:last] * FADING**age)
        items, index = np.unique(np.concatenate(ranges), return_inverse=True)
        totals = np.bincount(index, np.concatenate(scores), minlength=len(items))
        if len(items) <= MAX_RULE_ITEMS:
            return items, totals
        best = np.argsort(-totals, kind="stable")[:MAX_RULE_ITEMS]
        return items[best], totals[best]


def baselines_of(splits: Sequence[SplitVisitor], items: int) -> dict[str, Baseline]:
    """Return key -> baseline, fitted on the training sessions."""
    sessions = [session for split in splits for session in split.train]
    fitted = _Fitted(splits, sessions, items)
    return {
        "popularity": fitted.popular,
        "session-items": fitted.session_items,
        "bigram": fitted.bigram,
        "session-rules": fitted.session_rules,
        "session-knn": _Neighbours(sessions, items).scores,
        "own-history": fitted.own_history,
        "own-bigram": fitted.own_bigram,
        "own-rules": fitted.own_rules,
    }


class _Fitted:
    """Baselines by counts of the training sessions."""

    def __init__(self, splits: Sequence[SplitVisitor], sessions: Sequence[Clicks], items: int) -> None:
        self._items = items
        self._popularity = np.bincount(np.concatenate(sessions), minlength=items) / len(sessions)
        self._histories = [VisitHistory.of(split.train) for split in splits]
        self._rules = count_rules(sessions, items)
        self._followers = _by_first(VisitHistory.of(sessions).pairs)

    def popular(self, clicks: Clicks, visitor: int) -> Scores:
        return self._popularity

    def session_items(self, clicks: Clicks, visitor: int) -> Scores:
        return _recency(clicks, self._items) + 1e-6 * self._popularity

    def bigram(self, clicks: Clicks, visitor: int) -> Scores:
        return _row(self._followers.get(int(clicks[-1]), {}), self._items) + self._popularity

    def session_rules(self, clicks: Clicks, visitor: int) -> Scores:
        return _row(_score(self._rules, clicks), self._items) + 1e-6 * self._popularity

    def own_history(self, clicks: Clicks, visitor: int) -> Scores:
        return _row(self._histories[visitor].visits, self._items) + 1e-3 * self._popularity

    def own_bigram(self, clicks: Clicks, visitor: int) -> Scores:
        last, history = int(clicks[-1]), self._histories[visitor]
        after = {j: n for (i, j), n in history.pairs.items() if i == last}
        own = np.log1p(_row(history.visits, self._items)) + np.log1p(_row(after, self._items))
        return own + _recency(clicks, self._items) + 1e-3 * self._popularity

    def own_rules(self, clicks: Clicks, visitor: int) -> Scores:
        return self.own_bigram(clicks, visitor) + np.log1p(_row(_score(self._rules, clicks), self._items))


def _recency(clicks: Clicks, items: int) -> Scores:
    scores = np.zeros(items)
    scores[clicks] = FADING ** np.arange(len(clicks) - 1, -1, -1)  # the latest of repeated clicks is written last
    return scores


def _score(rules: SharedRules, clicks: Clicks) -> dict[int, float]:
    found, scores = rules.scores(clicks)
    return dict(zip(found.tolist(), scores.tolist(), strict=True))


def _row(counts: "Counter[int] | dict[int, float] | dict[int, int]", items: int) -> Scores:
    scores = np.zeros(items)
    scores[list(counts)] = list(counts.values())
    return scores


def _by_first(pairs: Counter[tuple[int, int]]) -> dict[int, dict[int, int]]:
    rows: dict[int, dict[int, int]] = {}
    for (first, second), count in pairs.items():
        rows.setdefault(first, {})[second] = count
    return rows


class _Neighbours:
    """Session-kNN (Ludewig & Jannach 2018).

    It scores items of the most similar training sessions, weighted by cosine similarity.
    """

    def __init__(self, sessions: Sequence[Clicks], items: int) -> None:
        self._sets = [np.unique(session) for session in sessions]
        self._items = items
        lengths = np.array([len(own) for own in self._sets])
        self._sizes = np.sqrt(lengths)
        order = np.argsort(np.concatenate(self._sets), kind="stable")
        self._holders = np.repeat(np.arange(len(sessions)), lengths)[order]
        self._starts = np.searchsorted(np.concatenate(self._sets)[order], np.arange(items + 1))

    def scores(self, clicks: Clicks, visitor: int) -> Scores:
        weights = np.zeros(len(self._sets))
        for age, item in enumerate(dict.fromkeys(reversed(clicks.tolist()))):
            holders = self._holders[self._starts[item] : self._starts[item + 1]]
            weights[holders] += FADING**age
        weights /= self._sizes
        near = np.argpartition(-weights, min(NEIGHBOURS, len(weights) - 1))[:NEIGHBOURS]
        scores = np.zeros(self._items)
        for k in near[weights[near] > 0]:
            scores[self._sets[k]] += weights[k]
        return scores
