"""The trivial lines that stand in every table: what needs no network, some of it not even a federation.

Every line maps (clicks so far, whose they are) to scores of all items, V; higher is better.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from client.tasks.sessions.baseline import VisitHistory
from client.tasks.sessions.data.split import SplitVisitor
from common.tasks.sessions.counts import FADING, KEYS, VALUES, SharedRules, count_rules
from common.tasks.sessions.vocabulary import Clicks

Scores = NDArray[np.float64]
Line = Callable[[Clicks, int], Scores]
"""(clicks so far, index of the visitor) -> scores."""

NEIGHBOURS = 200


def lines_of(splits: Sequence[SplitVisitor], items: int) -> dict[str, Line]:
    """All lines, fitted on the training sessions; by their titles in the table."""
    sessions = [session for split in splits for session in split.train]
    popularity = np.bincount(np.concatenate(sessions), minlength=items) / len(sessions)
    histories = [VisitHistory.of(split.train) for split in splits]
    counts = count_rules(sessions, items)
    rules = SharedRules(counts[KEYS], counts[VALUES], items)
    everybody = VisitHistory.of(sessions)
    followers = _by_first(everybody.pairs)
    neighbours = _Neighbours(sessions, items)

    def most_popular(clicks: Clicks, who: int) -> Scores:
        return popularity

    def session_items(clicks: Clicks, who: int) -> Scores:
        return _recency(clicks, items) + 1e-6 * popularity

    def bigram(clicks: Clicks, who: int) -> Scores:
        return _row(followers.get(int(clicks[-1]), {}), items) + popularity

    def session_rules(clicks: Clicks, who: int) -> Scores:
        return _row(_scored(rules, clicks), items) + 1e-6 * popularity

    def own_history(clicks: Clicks, who: int) -> Scores:
        return _row(histories[who].visits, items) + 1e-3 * popularity

    def own_everything(clicks: Clicks, who: int) -> Scores:
        last, history = int(clicks[-1]), histories[who]
        after = {j: n for (i, j), n in history.pairs.items() if i == last}
        own = np.log1p(_row(history.visits, items)) + np.log1p(_row(after, items))
        return own + _recency(clicks, items) + 1e-3 * popularity

    def own_and_rules(clicks: Clicks, who: int) -> Scores:
        return own_everything(clicks, who) + np.log1p(_row(_scored(rules, clicks), items))

    return {
        "popularity": most_popular,
        "items of the session, by recency": session_items,
        "bigram + popularity": bigram,
        "sequential rules": session_rules,
        f"session-kNN, {NEIGHBOURS} neighbours (central)": partial(neighbours.scores),
        "own history (frequency)": own_history,
        "own bigram + frequency + session": own_everything,
        "own + sequential rules": own_and_rules,
    }


def _recency(clicks: Clicks, items: int) -> Scores:
    scores = np.zeros(items)
    scores[clicks] = FADING ** np.arange(len(clicks) - 1, -1, -1)  # the latest of repeated clicks is written last
    return scores


def _scored(rules: SharedRules, clicks: Clicks) -> dict[int, float]:
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
    """Session-kNN (Ludewig & Jannach 2018): items of the most similar training sessions, weighted by cosine similarity."""

    def __init__(self, sessions: Sequence[Clicks], items: int) -> None:
        self._sets = [np.unique(session) for session in sessions]
        self._items = items
        lengths = np.array([len(own) for own in self._sets])
        self._sizes = np.sqrt(lengths)
        order = np.argsort(np.concatenate(self._sets), kind="stable")
        self._holders = np.repeat(np.arange(len(sessions)), lengths)[order]
        self._starts = np.searchsorted(np.concatenate(self._sets)[order], np.arange(items + 1))

    def scores(self, clicks: Clicks, who: int) -> Scores:
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
