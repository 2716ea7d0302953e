"""Click logs, with a click a row, and tables with a whole session a row."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from client.data.tables.codes import Codes
from client.data.tables.table import Table
from client.tasks.sessions.data.log import CASE, NOBODY, TEST, TRAIN, Log, log_of_sessions
from client.tasks.sessions.data.sessionize import Cut, Seconds, sessions_by_cut, sessions_by_name
from client.tasks.sessions.schema import ITEM, ITEMS, SCHEMA, SESSION, SPLIT, TIME, USER

PARTS = {"train": TRAIN, "test": TEST, "case": CASE}


@dataclass(frozen=True, eq=False)
class OrderedClicks:
    """C clicks of a table, and the order that makes sessions of them.

    Args:
        table: Rows with a click.
        users: Names of the users of all rows.
        rows: C, places of the clicks among the rows.
        user: C, codes into `users` or `NOBODY`.
        part: C, one of `TRAIN`, `TEST`, `CASE`.
        time: C, Unix seconds; 0 where unknown.
        order: C, places of the clicks, those of a session next to each other.
        session: C, numbers of the sessions in that order.
    """

    table: Table
    users: Sequence[str]
    rows: Codes
    user: Codes
    part: Codes
    time: Seconds
    order: Codes
    session: Codes


def log_of_clicks(table: Table, cut: Cut, time: Seconds | None = None) -> Log:
    """Return clicks as sessions in order of time; see `order_clicks`.

    Raises:
        DataError: A cell is empty, or a part of the data unknown; with file, line and column.
    """
    found = order_clicks(table, cut, time)
    item, items = found.table.codes(ITEM)
    item, part, user = (column[found.order] for column in (item, found.part, found.user))
    return Log(found.session, item, part, user, found.time[found.order], items, found.users)


def order_clicks(table: Table, cut: Cut, time: Seconds | None = None) -> OrderedClicks:
    """Return the clicks of a table in sessions.

    A row with a user and nothing else declares a user, who may have no clicks.

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
    if time is None:
        time = clicks.numbers(TIME) if TIME in clicks else np.zeros(len(clicks))
    part = _parts(clicks)
    if SESSION in clicks:
        order, session = sessions_by_name(user[is_click], clicks.codes(SESSION)[0], part, time)
    else:
        order, session = sessions_by_cut(user[is_click], part, time, cut)
    return OrderedClicks(clicks, users, np.flatnonzero(is_click), user[is_click], part, time, order, session)


def _parts(clicks: Table) -> Codes:
    if SPLIT not in clicks:
        return np.full(len(clicks), TRAIN)
    code, texts = clicks.codes(SPLIT)
    unknown = np.array([text not in PARTS for text in texts])
    if unknown.any():
        raise clicks.error(SPLIT, unknown[code], "is no part of the data", f"write one of {', '.join(PARTS)}")
    return np.array([PARTS[text] for text in texts], np.int64)[code]


def log_of_rows(table: Table) -> Log:
    """Return whole sessions as a log, in the order of their numbers if all have one.

    Raises:
        DataError: A row lacks a user or items.
    """
    table.require(USER, ITEMS, remedy="give every row a user and items")
    rows: Sequence[int] = range(len(table))
    names = table.columns[SESSION].to_pylist() if SESSION in table else []
    if names and all(name and name.isdecimal() for name in names):
        rows = sorted(rows, key=lambda row: int(names[row]))
    items, users = (table.columns[name].to_pylist() for name in (ITEMS, USER))
    return log_of_sessions([split_items(items[row]) for row in rows], TRAIN, [users[row] for row in rows])


def split_items(text: str) -> list[str]:
    """Return item ids separated by commas or blanks."""
    return [name.strip() for name in text.split(",") if name.strip()] if "," in text else text.split()
