"""The real data, by the counts that their SOURCE.md gives."""

from collections.abc import Callable

import numpy as np
import pytest

from client.tasks.sessions.data.visitors import Visits, split_visitor
from common.tasks.sessions.options import SessionsOptions
from studies.sessions.diversity import jaccard_distance, visited

Read = Callable[[str], Visits]


@pytest.mark.parametrize(
    ("name", "visitors", "sessions", "clicks", "items", "examples", "cases"),
    [
        ("yoochoose1_64", 5_809, 116_167, 486_026, 17_376, 369_859, 55_400),
        ("diginetica", 9_334, 186_670, 906_140, 43_097, 719_470, 60_858),
        ("yoochoose-clicks-100k", 890, 17_794, 70_278, 2_933, 70_278 - 17_794, 13_568 - 3_416),
        ("gowalla", 13_145, 2 * 32_381, 291_563, 34_567, 291_563 - 2 * 32_381, 0),
    ],
)
def test_counts(
    shared: Read, name: str, visitors: int, sessions: int, clicks: int, items: int, examples: int, cases: int
) -> None:
    """Groups of 20 where there are no users. Yoochoose 1/64 brings 55,898 cases, of which 498 ask for untrained items."""
    dataset = shared(name)
    found = [session for visitor in dataset.units for session in visitor.sessions]
    assert len(dataset.units) == visitors
    assert (len(found), sum(map(len, found)), len(dataset.vocabulary.items)) == (sessions, clicks, items)
    assert sum(len(session) - 1 for session in found) == examples
    assert sum(len(visitor.test) for visitor in dataset.units) == cases


def test_cases_that_cannot_be_asked_are_counted(shared: Read) -> None:
    assert shared("yoochoose1_64").notes[-1].startswith("498 of 55898 test cases left out")
    assert shared("diginetica").notes == (
        "9,334 visitors of 20 sessions each, in order; without a column user nothing says whose the sessions are",
    )


def test_the_most_clicked_item_is_the_first(shared: Read) -> None:
    dataset = shared("yoochoose-clicks-100k")
    clicks = np.concatenate([session for visitor in dataset.units for session in visitor.sessions])
    counts = np.bincount(clicks, minlength=len(dataset.vocabulary.items))
    assert (np.diff(counts) <= 0).all()


def test_gowalla_users_are_the_clients(shared: Read) -> None:
    dataset = shared("gowalla")
    active = [visitor for visitor in dataset.units if len(visitor.sessions) >= 5]
    assert len(active) == 5_143
    split = [split_visitor(visitor, SessionsOptions(), 0) for visitor in active]
    held = sum(len(v.sessions) - len(s.train) for v, s in zip(active, split, strict=True))
    assert held == sum(len(visitor.sessions) // 5 for visitor in active)
    assert jaccard_distance([visited(v) for v in active], 20_000, np.random.default_rng(0)) > 0.99
