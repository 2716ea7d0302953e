"""Click logs: one click a row, with a user, a session or both; also tables that hold a whole session a row."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from client.data.tables.reader import Table
from client.data.tables.values import Codes, codes, places, times
from client.tasks.sessions.data.log import CASE, NOBODY, TEST, TRAIN, Log, log_of_sessions
from client.tasks.sessions.data.sessionize import Cut, Seconds, sessions_by_cut, sessions_by_name
from common.errors import DataError

COLUMNS = {
    "user": ("user", "userid", "visitor", "visitorid"),
    "item": ("item", "itemid"),
    "items": ("items",),
    "timestamp": ("timestamp", "time", "datetime"),
    "session": ("session", "sessionid"),
    "split": ("split",),
}
"""Our name of a column and how others spell it; capitals, blanks, `_` and `-` do not count."""

PARTS = {"train": TRAIN, "test": TEST, "case": CASE}

NEEDED = (
    "a click log needs the columns item, user or session, and timestamp where no session says what belongs together"
)


def is_click_log(titles: Sequence[str]) -> bool:
    """Whether a first line is the header of a click log or of a table of sessions."""
    found = places(titles, COLUMNS)
    return bool({"item", "items"} & found.keys()) and len(found) > 1


def log_of_clicks(table: Table, cut: Cut, time: Seconds | None = None) -> Log:
    """Clicks as rows -> sessions in order of time.

    A row with a user and nothing else declares a user, who may have no clicks.

    Args:
        table: The rows.
        cut: Where a session ends, if no column says so.
        time: R, if it is not simply the column of times.

    Raises:
        DataError: A column is missing, a cell empty, a time or a part does not parse; with file, line and column.
    """
    title_of = places(table.titles, COLUMNS)
    if not ("item" in title_of and ("session" in title_of or {"user", "timestamp"} <= title_of.keys())):
        raise DataError(f"columns are missing: {NEEDED}", table.path, 1)
    users = codes(table.column(title_of["user"]))[1] if "user" in title_of else []
    clicks = table.where(~_declarations(table, title_of))
    _check_filled(clicks, title_of)
    if time is None:
        time = times(clicks, title_of["timestamp"]) if "timestamp" in title_of else np.zeros(len(clicks))
    return _log(clicks, title_of, cut, time, [user for user in users if user])


def _log(clicks: Table, title_of: dict[str, str], cut: Cut, time: Seconds, users: Sequence[str]) -> Log:
    user = np.full(len(clicks), NOBODY)
    if "user" in title_of:
        index = {name: k for k, name in enumerate(users)}
        user = np.fromiter((index[name] for name in clicks.column(title_of["user"]).to_pylist()), np.int64)
    part = _parts(clicks, title_of)
    item, names = codes(clicks.column(title_of["item"]))
    if "session" in title_of:
        order, session = sessions_by_name(user, codes(clicks.column(title_of["session"]))[0], part, time)
    else:
        order, session = sessions_by_cut(user, part, time, cut)
    return Log(session, item[order], part[order], user[order], time[order], names, users)


def _parts(clicks: Table, title_of: dict[str, str]) -> Codes:
    if "split" not in title_of:
        return np.full(len(clicks), TRAIN)
    texts = clicks.column(title_of["split"]).to_pylist()
    strange = next((row for row, text in enumerate(texts) if text not in PARTS), None)
    if strange is not None:
        raise clicks.error(strange, title_of["split"], f"no part of the data; write one of {', '.join(PARTS)}")
    return np.fromiter(map(PARTS.__getitem__, texts), np.int64)


def _declarations(table: Table, title_of: dict[str, str]) -> NDArray[np.bool_]:
    """R, rows that hold nothing but a user."""
    others = [table.filled(title) for name, title in title_of.items() if name != "user"]
    empty = ~np.any(others, axis=0)
    return empty & table.filled(title_of["user"]) if "user" in title_of else np.zeros(len(table), bool)


def _check_filled(clicks: Table, title_of: dict[str, str]) -> None:
    for title in title_of.values():
        filled = clicks.filled(title)
        if not filled.all():
            raise clicks.error(int(np.argmin(filled)), title, "empty cell")


def log_of_rows(table: Table) -> Log:
    """Whole sessions as rows, items separated by commas or blanks; in the order of their numbers, if they have such.

    Raises:
        DataError: There is no column of users.
    """
    title_of = places(table.titles, COLUMNS)
    if "user" not in title_of:
        message = "a table of whole sessions needs a column userId; without users write one session a line"
        raise DataError(message, table.path, 1)
    rows: Sequence[int] = range(len(table))
    names = table.column(title_of["session"]).to_pylist() if "session" in title_of else []
    if names and all(name.isdecimal() for name in names):
        rows = sorted(rows, key=lambda row: int(names[row]))
    items, users = (table.column(title_of[name]).to_pylist() for name in ("items", "user"))
    return log_of_sessions([split_items(items[row]) for row in rows], TRAIN, [users[row] for row in rows])


def split_items(text: str) -> list[str]:
    """Item ids separated by commas, or else by blanks."""
    return [name.strip() for name in text.split(",") if name.strip()] if "," in text else text.split()
