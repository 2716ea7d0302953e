"""Clicks as columns, in the order of sessions, before a vocabulary applies."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow
from numpy.typing import NDArray

from client.data.tables.schema import Codes, combine_codes, escape, join_rows
from client.data.tables.table import Table, to_codes
from client.data.tables.times import is_order
from client.tasks.sessions.data.visitors import ITEM, SCHEMA, SESSION, SPLIT, TIME, USER
from common.arrays import Flags, Floats

NOBODY = -1
"""Code of the user where the source knows none."""

TRAIN, TEST, CASE = 0, 1, 2
"""Part of a session: training; held out, with each click after the first or only the last as target."""

SHORTEST = 2
"""Clicks of a session that has something to tell."""


@dataclass(frozen=True, eq=False)
class Log:
    """C clicks, those of a session next to each other and in order.

    Args:
        session: C, number of each click's session, ascending.
        item: C, codes into `names`.
        part: C, one of `TRAIN`, `TEST`, `CASE`.
        user: C, codes into `users` or `NOBODY`.
        time: C, Unix seconds; 0 where unknown.
        row: C, numbers of the rows in the account; several clicks of a row that is a session.
        people: Numbers of the rows that declare a user alone.
        names: Distinct items.
        users: Distinct users, also those without a click.
        notes: As `Dataset.notes`.
    """

    session: Codes
    item: Codes
    part: Codes
    user: Codes
    time: Floats
    row: Codes
    people: Codes
    names: Sequence[str]
    users: Sequence[str] = ()
    notes: tuple[str, ...] = ()

    @property
    def starts(self) -> Codes:
        """Place of the first click of each session."""
        return np.flatnonzero(np.diff(self.session, prepend=-1))

    @property
    def lengths(self) -> Codes:
        """Number of clicks of each click's session, C."""
        counts = np.diff(self.starts, append=len(self.session))
        return np.repeat(counts, counts)

    @property
    def last(self) -> Flags:
        """C flags: True for the last click of its session."""
        last: Flags = np.diff(self.session, append=-1) != 0
        return last

    def where(self, chosen: Flags) -> "Log":
        """Return the clicks for which `chosen`, C, is true."""
        columns = {name: getattr(self, name)[chosen] for name in ("session", "item", "part", "user", "time", "row")}
        return replace(self, **columns)

    def long_enough(self) -> "Log":
        """Return the log without sessions of one click."""
        return self.where(self.lengths >= SHORTEST)


def log_of_sessions(sessions: Sequence[Sequence[str]], part: int, rows: Codes, users: Sequence[str] = ()) -> Log:
    """Return a log of whole sessions, in their order, one a row; `users` may have one per session."""
    lengths = [len(session) for session in sessions]
    item, names = to_codes(pyarrow.array([name for session in sessions for name in session], pyarrow.string()))
    user, owners = to_codes(pyarrow.array(users, pyarrow.string()))
    return Log(
        session=np.repeat(np.arange(len(sessions)), lengths),
        item=item,
        part=np.full(len(item), part),
        user=np.repeat(user if users else np.full(len(sessions), NOBODY), lengths),
        time=np.zeros(len(item)),
        row=np.repeat(rows, lengths),
        people=np.zeros(0, np.int64),
        names=names,
        users=owners,
    )


def join_logs(logs: Sequence[Log]) -> Log:
    """Return several logs as one; a user's sessions come in the order of the logs."""
    firsts = np.cumsum([0, *(int(log.session.max(initial=-1)) + 1 for log in logs)])
    numbered = [replace(log, session=log.session + first) for log, first in zip(logs, firsts, strict=False)]
    joined = join_rows(numbered, {"item": "names", "user": "users"})
    return replace(joined, notes=tuple(note for log in logs for note in log.notes))


Seconds = Floats


@dataclass(frozen=True)
class Cut:
    """Begin of a user's next session: after a gap without clicks, or at the next window of UTC."""

    by: Literal["gap", "window"]
    seconds: float


GAP, UNCUT = Cut("gap", 30 * 60), Cut("gap", np.inf)
DAY = Cut("window", 24 * 60 * 60)
"""Gowalla's user-day (§2.5)."""
EIGHT_HOURS = Cut("window", 8 * 60 * 60)
"""LastFM's (§2.5)."""


def sessions_by_name(owner: Codes, name: Codes, part: Codes, time: Seconds) -> tuple[Codes, Codes]:
    """Return rows in order, R, and their sessions' numbers, R: one per owner, name and part.

    Equal times are ordered as in the file.
    """
    _, first, key = np.unique(combine_codes(owner, name, part), return_index=True, return_inverse=True)
    start = np.full(len(first), np.inf)
    np.minimum.at(start, key, time)
    order = np.lexsort((time, first[key], start[key]))
    return order, _numbered(key[order])


def sessions_by_cut(owner: Codes, part: Codes, time: Seconds, cut: Cut) -> tuple[Codes, Codes]:
    """Return the same for sessions without names: a new one after a gap, or in another window."""
    order = np.lexsort((time, combine_codes(owner, part)))
    ordered = time[order]
    after_gap = np.diff(ordered, prepend=ordered[:1]) > cut.seconds
    window = np.floor(ordered / cut.seconds) if cut.by == "window" else np.cumsum(after_gap)
    return order, _numbered(owner[order], part[order], window)


def _numbered(*columns: NDArray[np.generic]) -> Codes:
    """Return numbers, from 0, of runs of rows that are equal in all columns."""
    changes = [column[1:] != column[:-1] for column in columns]
    return np.concatenate([[0], np.cumsum(np.any(changes, axis=0))])[: len(columns[0])]


PARTS = {"train": TRAIN, "test": TEST, "case": CASE}


def log_of_clicks(table: Table, cut: Cut, time: Seconds | None = None) -> Log:
    """Return the clicks of a table in sessions, in order of time.

    A row with a user and nothing else declares a user, who may have no clicks. Numbers that give an order tell of no pauses, so
    without a column of sessions they make one session of a user.

    Args:
        table: Rows under the names of `SCHEMA`.
        cut: Where a session ends, if no column says so.
        time: R, if it is not simply the column of times.

    Raises:
        DataError: A cell is empty, or a part of the data unknown; with file, line and column.
    """
    names = [name for name in SCHEMA.names if name in table]
    user, users = table.codes(USER) if USER in table else (np.full(len(table), NOBODY), [])
    is_click = (user == NOBODY) | np.any([table.filled(name) for name in names if name != USER], axis=0)
    clicks = table.where(is_click)
    clicks.require(*names, remedy="fill it, or leave the row out")
    notes: tuple[str, ...] = ()
    if time is None and TIME in clicks and SESSION not in clicks and is_order(clicks.columns[TIME]):
        cut = UNCUT
        notes = (
            f"'{escape(table.titles[TIME])}' gives an order without dates, so each visitor's clicks are one session",
        )
    if time is None:
        time = clicks.numbers(TIME) if TIME in clicks else np.zeros(len(clicks))
    part = _splits(clicks)
    if SESSION in clicks:
        order, session = sessions_by_name(user[is_click], clicks.codes(SESSION)[0], part, time)
    else:
        order, session = sessions_by_cut(user[is_click], part, time, cut)
    item, items = clicks.codes(ITEM)
    row, people = clicks.numbered[order], table.numbered[~is_click]
    item, part, user = (column[order] for column in (item, part, user[is_click]))
    return Log(session, item, part, user, time[order], row, people, items, users, notes)


def _splits(clicks: Table) -> Codes:
    if SPLIT not in clicks:
        return np.full(len(clicks), TRAIN)
    code, texts = clicks.codes(SPLIT)
    unknown = np.array([text not in PARTS for text in texts])
    if unknown.any():
        raise clicks.error(SPLIT, unknown[code], "is no part of the data", f"write one of {', '.join(PARTS)}")
    return np.array([PARTS[text] for text in texts], np.int64)[code]
