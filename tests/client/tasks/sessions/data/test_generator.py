"""The embedded visitors: a popularity tail, tastes, and something to learn from more than the last click."""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from client.tasks.sessions.data.generator import demo_visitors
from client.tasks.sessions.data.visitors import Case, Visitor, split_visitor
from common.tasks.sessions.options import SessionsOptions
from common.tasks.sessions.vocabulary import demo_items

Line = Callable[[NDArray[np.int64]], NDArray[np.float64]]

V = len(demo_items().items)


@pytest.fixture(scope="module")
def visitors() -> tuple[Visitor, ...]:
    return demo_visitors(0, 400, seed=0)


@pytest.fixture(scope="module")
def parts(visitors: tuple[Visitor, ...]) -> tuple[list[list[int]], list[Case]]:
    """Training sessions and test cases."""
    splits = [split_visitor(visitor, SessionsOptions(), 0) for visitor in visitors]
    return [c.tolist() for s in splits for c in s.train], [case for s in splits for case in s.test]


def test_a_visitor_depends_on_seed_and_number_only() -> None:
    def key(visitor: Visitor) -> tuple[object, ...]:
        return visitor.name, [session.tolist() for session in visitor.sessions]

    assert [key(v) for v in demo_visitors(10, 13, 7)] == [key(v) for v in demo_visitors(0, 20, 7)[10:13]]
    assert [key(v) for v in demo_visitors(0, 20, 7)] != [key(v) for v in demo_visitors(0, 20, 8)]


def test_sizes(visitors: tuple[Visitor, ...]) -> None:
    counts = {len(visitor.sessions) for visitor in visitors}
    lengths = np.array([len(session) for visitor in visitors for session in visitor.sessions])
    assert counts == {8, 9, 10, 11, 12}
    assert (lengths.min(), lengths.max() <= 20) == (2, True)
    assert lengths.mean() == pytest.approx(4.5, abs=0.15)


def test_a_quarter_of_the_targets_was_seen_in_the_session(parts: tuple[list[list[int]], list[Case]]) -> None:
    assert np.mean([case.target in case.prefix for case in parts[1]]) == pytest.approx(0.24, abs=0.04)


def test_popularity_has_a_tail(visitors: tuple[Visitor, ...]) -> None:
    clicks = Counter(item for visitor in visitors for session in visitor.sessions for item in session.tolist())
    top = [count for _, count in clicks.most_common(V // 10)]
    assert sum(top) > 0.33 * clicks.total()
    assert len(clicks) > 0.8 * V


def test_visitors_keep_to_few_departments(visitors: tuple[Visitor, ...]) -> None:
    alike = [len(set(v.sessions[0].tolist()) & set(v.sessions[1].tolist())) for v in visitors]
    strangers = [len(set(a.sessions[0].tolist()) & set(b.sessions[0].tolist())) for a, b in pairwise(visitors)]
    assert np.mean(alike) > 2 * np.mean(strangers)


def test_the_whole_session_tells_more_than_the_last_click(parts: tuple[list[list[int]], list[Case]]) -> None:
    """MRR@20: popularity about 5; bigrams 41; weighing bigrams by the item clicked before them, 45."""
    train, test = parts
    popularity = np.bincount(np.concatenate(train), minlength=V) / sum(map(len, train))
    after, skip = np.zeros((V, V)), np.zeros((V, V))
    for session in train:
        for k in range(1, len(session)):
            after[session[k - 1], session[k]] += 1
            if k > 1:
                skip[session[k - 2], session[k]] += 1

    def bigram(prefix: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(after[prefix[-1]] + popularity)

    def weighed(prefix: NDArray[np.int64]) -> NDArray[np.float64]:
        return bigram(prefix) * (0.5 + skip[prefix[-2]]) if len(prefix) > 1 else bigram(prefix)

    lines = [_mrr(test, line) for line in (lambda _: popularity, bigram, weighed)]
    assert lines[0] < 0.1
    assert lines[1] > 4 * lines[0]
    assert lines[2] > lines[1] + 0.03


def _mrr(cases: list[Case], line: Line) -> float:
    ranks = []
    for case in cases:
        scores = line(case.prefix)
        ranks.append(1 + int((scores > scores[case.target]).sum()))
    return float(np.mean([1 / rank if rank <= 20 else 0 for rank in ranks]))


def test_items_have_names_a_person_can_read() -> None:
    assert V == 432
    assert {"steel espresso pot", "two-person tent", "porcelain teapot"} <= set(demo_items().items)
