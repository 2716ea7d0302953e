"""Visitors as a click log."""

from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path

import numpy as np

from client.data.tables.writer import private_csv
from client.tasks.sessions.data.visitors import Visitor
from common.tasks.sessions.vocabulary import Clicks, Items

HEADER = ("user", "item", "timestamp", "session", "split")


def write_visitors(path: Path, visitors: Iterable[Visitor], items: Items) -> None:
    """Write visitors as CSV, readable by the owner only; `read_visitors` with the items inverts it.

    Times are running numbers. The column `split` is `train`, or `case` for a test case, which is a session of its own
    whose last click is asked for. A visitor with neither is a row with a user and nothing else.
    """
    with private_csv(path) as writer:
        writer.writerow(HEADER)
        for visitor in visitors:
            writer.writerows(_lines(visitor, items))


def _lines(visitor: Visitor, items: Items) -> Iterator[tuple[str | int, ...]]:
    clock = count()
    for number, (split, clicks) in enumerate(_sessions(visitor), start=1):
        for item in clicks.tolist():
            yield visitor.name, items.items[item], next(clock), number, split
    if not (visitor.sessions or visitor.test):
        yield visitor.name, "", "", "", ""


def _sessions(visitor: Visitor) -> Iterator[tuple[str, Clicks]]:
    yield from (("train", session) for session in visitor.sessions)
    yield from (("case", np.append(case.prefix, case.target)) for case in visitor.test)
