"""The data of the sessions table, cut to sizes that two cores can tune on; what was cut is in `Setting.about`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from client.data.sessions.reader import read_visitors
from client.data.sessions.visitors import Dataset, Visitor
from common.tasks.sessions import Clicks, Items


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
    """

    key: str
    title: str
    about: str
    clients_a_round: int
    rounds: int
    read: Callable[[Path], Dataset]


def gowalla(folder: Path) -> Dataset:
    """1,000 users with five or more sessions over the 2,000 most visited places."""
    whole = most_visited(read_visitors(folder / "gowalla"), 2000)
    active = [visitor for visitor in whole.visitors if len(visitor.sessions) >= 5]
    chosen = sorted(np.random.default_rng(0).permutation(len(active))[:1000].tolist())
    return replace(whole, visitors=tuple(active[k] for k in chosen))


def yoochoose(folder: Path) -> Dataset:
    """The slice of 100,000 clicks; groups of 20 sessions are clients, and the next day's sessions are the test cases."""
    return read_visitors(folder / "yoochoose-clicks-100k")


def most_visited(whole: Dataset, places: int) -> Dataset:
    """Only the most clicked items; what is left of a session counts if it has two clicks."""
    clicks = np.concatenate([session for visitor in whole.visitors for session in visitor.sessions])
    kept = np.argsort(-np.bincount(clicks, minlength=len(whole.items.items)), kind="stable")[:places]
    place = np.full(len(whole.items.items), -1)
    place[kept] = np.arange(len(kept))
    visitors = tuple(_restricted(visitor, place) for visitor in whole.visitors)
    names = Items(items=tuple(whole.items.items[k] for k in kept.tolist()))
    return Dataset(tuple(v for v in visitors if v.sessions), names)


def _restricted(visitor: Visitor, place: np.ndarray) -> Visitor:
    sessions: list[Clicks] = [place[session][place[session] >= 0] for session in visitor.sessions]
    return replace(visitor, sessions=tuple(s for s in sessions if len(s) >= 2))


SETTINGS = (
    Setting(
        "gowalla",
        "Gowalla, clients = users",
        "Users of two tenths of the published sessions, the 2,000 most visited places, 1,000 random users with five or more "
        "sessions; a random fifth of each user's sessions is the test (this form has no times).",
        100,
        100,
        gowalla,
    ),
    Setting(
        "yoochoose",
        "Yoochoose, 100,000 clicks, clients = groups of 20 sessions",
        "A week of the set; the next day is the test.",
        60,
        120,
        yoochoose,
    ),
)
