"""The data of the sessions table, cut to sizes that two cores can tune on; what was cut is in `Setting.about`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.sessions.experiments import ABLATED, ABLATION, COARSE, COOLING, FINE, MAIN, WITH_TAGNN, Settings
from client.tasks.sessions.data.reader import read_visitors
from client.tasks.sessions.data.visitors import Case, Visitor, Visits
from common.tasks.sessions.vocabulary import Clicks, Items


@dataclass(frozen=True)
class Setting:
    """One data set as it is trained on.

    Args:
        key: Short name, also of cached results.
        title: In the table.
        about: What was cut, in a sentence.
        clients_a_round: Out of all.
        rounds: Of training.
        read: Reads it from the folder of all data sets.
        grid: Of the adaptive methods.
        rows: Experiments run on it.
        evaluate_every: Rounds between two evaluations by all clients.
        cooldown: Share of the rounds, the last ones, over which the server's step falls to zero.
    """

    key: str
    title: str
    about: str
    clients_a_round: int
    rounds: int
    read: Callable[[Path], Visits]
    grid: tuple[Settings, ...] = COARSE
    rows: tuple[str, ...] = MAIN
    evaluate_every: int = 10
    cooldown: float = 0.0


def gowalla(folder: Path) -> Visits:
    """1,000 users with five or more sessions over the 2,000 most visited places."""
    whole = most_visited(read_visitors(folder / "gowalla"), 2000)
    active = [visitor for visitor in whole.units if len(visitor.sessions) >= 5]
    chosen = sorted(np.random.default_rng(0).permutation(len(active))[:1000].tolist())
    return replace(whole, units=tuple(active[k] for k in chosen))


def yoochoose_64(folder: Path) -> Visits:
    """500 groups of 20 sessions over the 3,000 most clicked items."""
    return some_groups(most_visited(read_visitors(folder / "yoochoose1_64"), 3000), 500)


def diginetica(folder: Path) -> Visits:
    """1,000 groups of 20 sessions over the 3,000 most clicked items."""
    return some_groups(most_visited(read_visitors(folder / "diginetica"), 3000), 1000)


def yoochoose(folder: Path) -> Visits:
    """The slice of 100,000 clicks; groups of 20 sessions are clients, and the next day's sessions are the test cases."""
    return read_visitors(folder / "yoochoose-clicks-100k")


def some_groups(whole: Visits, clients: int, cases: int = 4) -> Visits:
    """Random clients with sessions, and as many random test cases of each."""
    rng = np.random.default_rng(0)
    busy = [visitor for visitor in whole.units if len(visitor.sessions) >= 5]
    chosen = [busy[k] for k in sorted(rng.permutation(len(busy))[:clients].tolist())]
    return replace(whole, units=tuple(_with_fewer_cases(visitor, cases, rng) for visitor in chosen))


def _with_fewer_cases(visitor: Visitor, cases: int, rng: np.random.Generator) -> Visitor:
    kept = sorted(rng.permutation(len(visitor.test))[:cases].tolist())
    return replace(visitor, test=tuple(visitor.test[k] for k in kept))


def most_visited(whole: Visits, places: int) -> Visits:
    """Only the most clicked items; what is left of a session counts if it has two clicks, and a test case by its target."""
    clicks = np.concatenate([session for visitor in whole.units for session in visitor.sessions])
    kept = np.argsort(-np.bincount(clicks, minlength=len(whole.vocabulary.items)), kind="stable")[:places]
    place = np.full(len(whole.vocabulary.items), -1)
    place[kept] = np.arange(len(kept))
    visitors = tuple(_restricted(visitor, place) for visitor in whole.units)
    names = Items(items=tuple(whole.vocabulary.items[k] for k in kept.tolist()))
    return Visits(tuple(v for v in visitors if v.sessions), names)


def _restricted(visitor: Visitor, place: np.ndarray) -> Visitor:
    def renumbered(clicks: Clicks) -> Clicks:
        return np.asarray(place[clicks][place[clicks] >= 0])

    sessions = tuple(renumbered(session) for session in visitor.sessions)
    cases = (Case(renumbered(case.prefix), int(place[case.target])) for case in visitor.test)
    test = tuple(case for case in cases if case.target >= 0 and len(case.prefix))
    return replace(visitor, sessions=tuple(s for s in sessions if len(s) >= 2), test=test)


SETTINGS = (
    Setting(
        "gowalla",
        "Gowalla, clients = users",
        "Users of two tenths of the published sessions, the 2,000 most visited places, 1,000 random users with five or more "
        "sessions; a random fifth of each user's sessions is the test (this form has no times).",
        100,
        100,
        gowalla,
        FINE,
        ABLATED,
    ),
    Setting(
        "yoochoose",
        "Yoochoose, 100,000 clicks, clients = groups of 20 sessions",
        "A week of the set; the next day is the test.",
        60,
        160,
        yoochoose,
    ),
    Setting(
        "yoochoose64",
        "Yoochoose 1/64, clients = groups of 20 sessions",
        "The 3,000 most clicked items, 500 random groups with five sessions or more left, four random test cases each.",
        50,
        100,
        yoochoose_64,
        ABLATION,
        evaluate_every=20,
        cooldown=0.5,
    ),
    Setting(
        "diginetica",
        "Diginetica, clients = groups of 20 sessions",
        "The 3,000 most clicked items, 1,000 random groups with five sessions or more left, four random test cases each.",
        100,
        100,
        diginetica,
        COOLING,
        rows=WITH_TAGNN,
        evaluate_every=20,
        cooldown=0.5,
    ),
)
