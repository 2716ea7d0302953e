"""Plain tables in long form: a time, perhaps a site, and what was measured."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from client.data.tables.reader import Table
from client.data.tables.values import codes, numbers
from client.tasks.traffic.data.local_time import times
from client.tasks.traffic.data.readings import Readings
from common.errors import DataError

TIMES = ("timestamp", "time", "datetime", "date_time", "date")
SITES = ("site", "site_id", "sensor", "sensor_id", "station", "station_id")
"""Names of the columns; the first that is there counts."""

NEEDED = "a table needs the columns timestamp, perhaps site, and one for each variable, such as volume"


def read_plain(table: Table) -> Readings:
    """Every column but time and site is a variable; without a site the file is one series, named after it.

    Raises:
        DataError: A column is missing or named twice, or a cell is malformed (with line and column).
    """
    time = _find(table.titles, TIMES)
    if not time:
        raise DataError(f"no time among the columns named in the first line; {NEEDED}", table.path, 1)
    site = _find(table.titles, SITES)
    variables = [title for title in _usable(table) if title not in (time, site)]
    if not variables:
        raise DataError(f"no variable among the columns named in the first line; {NEEDED}", table.path, 1)
    if site and not table.filled(site).all():
        raise table.error(int((~table.filled(site)).argmax()), site, "empty cell; name the site of every reading")
    places, names = codes(table.column(site)) if site else (np.zeros(len(table), np.int64), [_stem(table.path)])
    values = np.stack([numbers(table, title) for title in variables], axis=1)
    return Readings(places, times(table, time), values, names, tuple(variables))


def _usable(table: Table) -> list[str]:
    """Titles of the columns; one without a name may be there if it is empty.

    Raises:
        DataError: A name stands twice, or a filled column has none.
    """
    for title in table.titles:
        if table.titles.count(title) > 1 and title:
            raise DataError("two columns have this name", table.path, 1, title)
        if not title and table.filled(title).any():
            raise DataError(f"a column has no name; name it or leave it out; {NEEDED}", table.path, 1)
    return [title for title in table.titles if title]


def _find(titles: Sequence[str], names: Sequence[str]) -> str:
    lower = {title.lower(): title for title in reversed(titles)}
    return next((lower[name] for name in names if name in lower), "")


def _stem(path: Path) -> str:
    return Path(path.stem).stem if path.suffix == ".gz" else path.stem
