"""Visitors as a click log."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np

from client.data.tables.writer import write_private_csv
from client.tasks.sessions.data.visitors import Visitor, Visits
from client.tasks.sessions.schema import ITEM, SESSION, SPLIT, TIME, USER
from common.tasks.sessions.vocabulary import Clicks, Items


def write_visitors(path: Path, dataset: Visits) -> None:
    """Write visitors as CSV, readable by the owner only; `read_visitors` with the vocabulary inverts it.

    Times are running numbers. The column `split` is `train`, or `case` for a test case, which is a session of its own
    whose last click is asked for. A visitor with neither is a row with a user and nothing else.
    """
    rows = (row for visitor in dataset.units for row in _rows(visitor, dataset.vocabulary))
    write_private_csv(path, (USER, ITEM, TIME, SESSION, SPLIT), rows)


def _rows(visitor: Visitor, items: Items) -> Iterator[tuple[str | int, ...]]:
    clock = count()
    for number, (split, clicks) in enumerate(_sessions(visitor), start=1):
        for item in clicks.tolist():
            yield visitor.name, items.items[item], next(clock), number, split
    if not (visitor.sessions or visitor.test):
        yield visitor.name, "", "", "", ""


def _sessions(visitor: Visitor) -> Iterator[tuple[str, Clicks]]:
    yield from (("train", session) for session in visitor.sessions)
    yield from (("case", np.append(case.prefix, case.target)) for case in visitor.test)
