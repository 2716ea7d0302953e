"""Public traffic counts as their owners published them, known by their first line."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow.compute
from numpy.typing import NDArray

from client.data.tables.reader import Table, read_columns
from client.data.tables.values import codes, numbers
from client.tasks.traffic.data.impute import in_runs
from client.tasks.traffic.data.local_time import times
from client.tasks.traffic.data.readings import Readings, last_of

VOLUME = ("volume",)
QUARTER = 15 * 60
"""Seconds."""
MONDAY = np.datetime64("2001-01-01", "s")
"""Invented first day of the ten sites, whose dates are not published; their weekdays are."""
OUTAGE = 3
"""Hours of zeros that are taken for an outage."""

TEN = tuple(f"site-{number:02d}" for number in range(1, 11))

Reader = Callable[[Table], Readings]


def read_original(path: Path, cells: Sequence[str]) -> Readings | None:
    """Read the published file that has this first line, if it is one.

    Raises:
        DataError: A malformed cell (with line and column).
    """
    for titles, read in BY_TITLES:
        if set(titles) <= set(cells):
            return read(read_columns(path, ","))
    if len(cells) == len(TEN) and path.name.lower().startswith("volume_data.csv"):
        return _ten_sites(read_columns(path, ",", TEN))
    return None


def _boroondara(table: Table) -> Readings:
    """A row an approach and day, 96 quarters of an hour; a client an approach that has every day.

    Under one label there are two approaches, one after the other (4335 HIGH_ST NE of CHARLES_ST): the later counts.
    """
    labels = pyarrow.compute.binary_join_element_wise(table.column("SCATS Number"), table.column("Location"), " ")
    site, names = codes(labels)
    day = times(table, "Start Time", day_first=True)
    rows, repeated = last_of(site, day)
    every = len(np.unique(day))
    whole = np.bincount(site[rows], minlength=len(names)) == every
    rows = rows[whole[site[rows]]]

    quarters = [title for title in table.titles if ":" in title]
    values = np.stack([numbers(table, title) for title in quarters], axis=1)[rows]
    kept = [name for name, complete in zip(names, whole, strict=True) if complete]
    notes = (
        f"{len(names) - len(kept)} of {len(names)} approaches without all {every} days left out",
        f"{repeated} rows of an approach and day that came again replaced by the later ones",
    )
    place = (np.cumsum(whole) - 1)[site[rows]]
    time = day[rows, None] + QUARTER * np.arange(len(quarters))
    return Readings(np.repeat(place, len(quarters)), time.ravel(), values.reshape(-1, 1), kept, VOLUME, notes)


def _ten_sites(table: Table) -> Readings:
    """Ten columns of quarters of an hour, without times; zeros for hours on end are outages."""
    values = np.stack([numbers(table, title) for title in TEN], axis=1)
    dead = np.stack([_outage(column) for column in values.T], axis=1)
    time = MONDAY.astype(np.int64) + QUARTER * np.arange(len(values))
    hours = int(dead.sum()) // 4
    notes = (
        f"the days are not dated: the first, a Monday, is called {MONDAY.astype('datetime64[D]')}",
        f"{hours} hours in runs of {OUTAGE} or more without a vehicle taken as missing ({dead.mean():.1%})",
    )
    site = np.repeat(np.arange(len(TEN)), len(values))
    alive = np.where(dead, np.nan, values).T.reshape(-1, 1)
    return Readings(site, np.tile(time, len(TEN)), alive, TEN, VOLUME, notes)


def _outage(quarters: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which quarters lie in runs of whole hours without a vehicle; a broken last hour is never one."""
    hours = quarters[: len(quarters) // 4 * 4].reshape(-1, 4).sum(axis=1)
    dead = np.repeat(in_runs(hours == 0, OUTAGE), 4)
    return np.pad(dead, (0, len(quarters) - len(dead)))


def _interstate(table: Table) -> Readings:
    """One station; an hour stands once for every kind of weather it had."""
    time = times(table, "date_time", day_first=True)
    hours, first = np.unique(time, return_index=True)
    values = numbers(table, "traffic_volume")[first, None]
    notes = (f"{len(time) - len(hours)} further rows of an hour (its other weather) left out",)
    return Readings(np.zeros(len(hours), np.int64), hours, values, ("i-94-station-301",), VOLUME, notes)


def _states(table: Table) -> Readings:
    """A series a state, a reading a day."""
    site, fips = codes(table.column("FIPS.State.Code"))
    notes = ("volumes are millions of vehicles a day",)
    names = [f"state-{code:>02}" for code in fips]
    return Readings(site, times(table, "date"), numbers(table, "stateTraffic")[:, None], names, VOLUME, notes)


BY_TITLES: tuple[tuple[tuple[str, ...], Reader], ...] = (
    (("SCATS Number", "Location", "Start Time", "0:00", "23:45"), _boroondara),
    (("date_time", "traffic_volume", "weather_main"), _interstate),
    (("date", "FIPS.State.Code", "stateTraffic"), _states),
)
"""Columns that tell the set, and how it is read."""
