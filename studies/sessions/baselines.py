"""Baselines of next-item recommendation that need no network; some need no federation either.

Each maps (clicks so far, index of the visitor) to scores of all items, V; higher is better.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from client.tasks.sessions.baseline import VisitHistory
from client.tasks.sessions.data.visitors import SplitVisitor
from common.tasks.sessions.counts import FADING, KEYS, VALUES, SharedRules, count_rules
from common.tasks.sessions.vocabulary import Clicks

Scores = NDArray[np.float64]
Baseline = Callable[[Clicks, int], Scores]
"""(clicks so far, index of the visitor) -> scores."""

NEIGHBOURS = 200


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
        counts = count_rules(sessions, items)
        self._items = items
        self._popularity = np.bincount(np.concatenate(sessions), minlength=items) / len(sessions)
        self._histories = [VisitHistory.of(split.train) for split in splits]
        self._rules = SharedRules(counts[KEYS], counts[VALUES], items)
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
