"""Embedded demo visitors of a department store: items with a popularity tail, users with tastes.

In every department people pursue one of a few errands, each of which passes through its own items in its own order. An item
belongs to several errands, so the last click alone does not tell what comes next, the clicks before it do. Every
visitor frequents a few departments and errands; a part of the clicks goes back to what the session has seen.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from client.tasks.sessions.data.visitors import Visitor, as_clicks
from common.arrays import Floats, Ints
from common.tasks.sessions.vocabulary import DEPARTMENTS, Clicks, department_size

ERRANDS = 6
"""Errands per department."""
STOPS = 16
"""Items of an errand, a closed round."""
LONGEST = 20
"""Most clicks of a session."""

MEAN_EXTRA = 2.5
"""Mean clicks beyond the first two."""
REPEAT = 0.2
"""Chance that a click goes back to an item of the session."""
ASTRAY = 0.2
"""Probability that a new click is on any item of the department, by popularity."""


@dataclass(frozen=True)
class Shop:
    """Shop that all visitors share, whatever the seed.

    Args:
        fame: Popularity of departments, sums to 1.
        wanted: Popularity of the items of a department, departments × items, rows sum to 1.
        rounds: Items of an errand in order, departments × errands × stops; indices into the vocabulary.
    """

    fame: Floats
    wanted: Floats
    rounds: Ints


def demo_visitors(start: int, stop: int, seed: int) -> tuple[Visitor, ...]:
    """Generate visitors number start … stop−1; visitor k depends on (seed, k) only."""
    return tuple(_visitor(k, np.random.default_rng([seed, k])) for k in range(start, stop))


@cache
def demo_store() -> Shop:
    """Return the store's departments and errands."""
    rng = np.random.default_rng(20)
    departments, size = DEPARTMENTS, department_size()
    wanted = np.array([rng.permutation(_zipf(size, 1.0)) for _ in range(departments)])
    rounds = [
        [department * size + rng.choice(size, STOPS, replace=False, p=wanted[department]) for _ in range(ERRANDS)]
        for department in range(departments)
    ]
    return Shop(rng.permutation(_zipf(departments, 0.7)), wanted, np.array(rounds))


def _visitor(number: int, rng: np.random.Generator) -> Visitor:
    store = demo_store()
    departments = rng.choice(DEPARTMENTS, size=int(rng.integers(2, 5)), replace=False, p=store.fame)
    love = rng.dirichlet(np.full(len(departments), 1.5))
    habits = rng.dirichlet(np.full(ERRANDS, 0.7), size=len(departments))
    sessions = []
    for _ in range(int(rng.integers(8, 13))):
        choice = int(rng.choice(len(departments), p=love))
        sessions.append(_session(int(departments[choice]), int(rng.choice(ERRANDS, p=habits[choice])), rng))
    return Visitor(f"visitor-{number:05d}", tuple(sessions))


def _session(department: int, errand: int, rng: np.random.Generator) -> Clicks:
    """Draw clicks along the errand's cycle from a random start, with steps back and random items."""
    store, size = demo_store(), department_size()
    length = min(LONGEST, 1 + int(rng.geometric(1 / (1 + MEAN_EXTRA))))
    stop = int(rng.integers(STOPS))
    clicks = [int(store.rounds[department, errand, stop])]
    while len(clicks) < length:
        if rng.random() < REPEAT:
            clicks.append(int(rng.choice(clicks)))
        elif rng.random() < ASTRAY:
            clicks.append(department * size + int(rng.choice(size, p=store.wanted[department])))
        else:
            stop = (stop + 1) % STOPS
            clicks.append(int(store.rounds[department, errand, stop]))
    return as_clicks(clicks)


def _zipf(size: int, exponent: float) -> Floats:
    weights = 1 / np.arange(1, size + 1) ** exponent
    return np.asarray(weights / weights.sum())
