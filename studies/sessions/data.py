"""Readers of the sessions study's data, which cut the published sets as `sets.py` describes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from client.tasks.sessions.data.reader import read_visitors
from client.tasks.sessions.data.visitors import Case, Visitor, Visits
from common.tasks.sessions.vocabulary import Clicks, Items


def gowalla(folder: Path) -> Visits:
    """Read at most 1,000 users with five or more sessions over the most visited places."""
    whole = keep_most_visited(read_visitors(folder / "gowalla"), 2000)
    active = [visitor for visitor in whole.units if len(visitor.sessions) >= 5]
    chosen = sorted(np.random.default_rng(0).permutation(len(active))[:1000].tolist())
    return replace(whole, units=tuple(active[k] for k in chosen))


def yoochoose_64(folder: Path) -> Visits:
    """Read at most 500 groups of 20 sessions over the most clicked items."""
    return some_groups(keep_most_visited(read_visitors(folder / "yoochoose1_64"), 3000), 500)


def diginetica(folder: Path) -> Visits:
    """Read at most 1,000 groups of 20 sessions over the most clicked items."""
    return some_groups(keep_most_visited(read_visitors(folder / "diginetica"), 3000), 1000)


def yoochoose(folder: Path) -> Visits:
    """Read the slice of 100,000 clicks.

    Groups of 20 sessions are clients; sessions of the next day are test cases.
    """
    return read_visitors(folder / "yoochoose-clicks-100k")


def some_groups(whole: Visits, clients: int, cases: int = 4) -> Visits:
    """Return random clients with at least five sessions, with some random test cases each."""
    rng = np.random.default_rng(0)
    busy = [visitor for visitor in whole.units if len(visitor.sessions) >= 5]
    chosen = [busy[k] for k in sorted(rng.permutation(len(busy))[:clients].tolist())]
    return replace(whole, units=tuple(_with_fewer_cases(visitor, cases, rng) for visitor in chosen))


def _with_fewer_cases(visitor: Visitor, cases: int, rng: np.random.Generator) -> Visitor:
    chosen = sorted(rng.permutation(len(visitor.test))[:cases].tolist())
    return replace(visitor, test=tuple(visitor.test[k] for k in chosen))


def keep_most_visited(whole: Visits, places: int) -> Visits:
    """Return the data restricted to the most clicked items.

    A session needs two remaining clicks; a test case needs its target and one click before it.
    """
    clicks = np.concatenate([session for visitor in whole.units for session in visitor.sessions])
    kept = np.argsort(-np.bincount(clicks, minlength=len(whole.vocabulary.items)), kind="stable")[:places]
    place = np.full(len(whole.vocabulary.items), -1)
    place[kept] = np.arange(len(kept))
    visitors = tuple(_restrict(visitor, place) for visitor in whole.units)
    names = Items(items=tuple(whole.vocabulary.items[k] for k in kept.tolist()))
    return Visits(tuple(v for v in visitors if v.sessions), names)


def _restrict(visitor: Visitor, place: np.ndarray) -> Visitor:
    def renumber(clicks: Clicks) -> Clicks:
        return np.asarray(place[clicks][place[clicks] >= 0])

    sessions = tuple(renumber(session) for session in visitor.sessions)
    cases = (Case(renumber(case.prefix), int(place[case.target])) for case in visitor.test)
    test = tuple(case for case in cases if case.target >= 0 and len(case.prefix))
    return replace(visitor, sessions=tuple(s for s in sessions if len(s) >= 2), test=test)


READERS: dict[str, Callable[[Path], Visits]] = {
    "gowalla": gowalla,
    "yoochoose": yoochoose,
    "yoochoose64": yoochoose_64,
    "diginetica": diginetica,
}
"""Data set -> its reader, which takes the folder of all data sets."""
