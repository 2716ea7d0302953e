"""Sessions as the client holds them."""

from dataclasses import dataclass

import numpy as np

from client.data.dataset import Dataset
from common.arrays import Ints
from common.tasks.sessions.vocabulary import Clicks, Items


@dataclass(frozen=True)
class Case:
    """A test example as published sets give it: the clicks so far and the click that followed."""

    prefix: Clicks
    target: int


@dataclass(frozen=True)
class Visitor:
    """One user, device or group of sessions: what becomes a client.

    Args:
        name: Private.
        sessions: In time order where times are known, each at least 2 clicks long.
        test: Test examples where the source brings its own; otherwise the split cuts some sessions off.
    """

    name: str
    sessions: tuple[Clicks, ...]
    test: tuple[Case, ...] = ()


Visits = Dataset[Items, Visitor]


def as_clicks(items: list[int]) -> Clicks:
    """Return a session from a list of indices."""
    clicks: Ints = np.array(items, np.int64)
    return clicks
