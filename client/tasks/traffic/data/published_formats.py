"""Public traffic counts as their owners published them, known by their first line."""

from collections.abc import Callable

import numpy as np
import pyarrow.compute

from client.data.tables.cells import Cells
from client.data.tables.reader import detect_cells, to_table
from client.data.tables.schema import Column, Dialect, TableSchema
from client.data.tables.table import Table
from client.data.tables.values import to_codes
from client.tasks.traffic.data.impute import in_runs
from client.tasks.traffic.data.readings import Readings, find_last, to_seconds
from common.arrays import Flags, Floats

VOLUME = ("volume",)
QUARTER = 15 * 60
"""Seconds."""
MONDAY = np.datetime64("2001-01-01", "s")
"""Invented first day of the ten sites, whose dates are not published; their weekdays are."""
OUTAGE = 3
"""Hours of zeros that are taken for an outage."""

TEN = tuple(f"site-{number:02d}" for number in range(1, 11))

QUARTERS = tuple(f"{hour}:{minute:02}" for hour in range(24) for minute in (0, 15, 30, 45))

Reader = Callable[[Table], Readings]


def read_original(cells: Cells) -> Readings | None:
    """Read the published file that has this first line, if it is one.

    Raises:
        DataError: A malformed cell (with line and column).
    """
    for schema, read in FORMATS:
        if set(schema.names) <= set(cells.titles):
            return read(to_table(cells, schema, DAY_FIRST))
    path = cells.content.path
    if len(cells.titles) == len(TEN) and path.name.lower().startswith("volume_data.csv"):
        return _ten_sites(to_table(detect_cells(cells.content, TEN_SITES), TEN_SITES))
    return None


def _boroondara(table: Table) -> Readings:
    """Read a row for each approach and day, of 96 quarters; a client is an approach that has every day.

    Under one label there are two approaches, one after the other (4335 HIGH_ST NE of CHARLES_ST): the later counts.
    """
    labels = (table.columns["SCATS Number"], table.columns["Location"])
    site, names = to_codes(pyarrow.compute.binary_join_element_wise(*labels, " "))
    day = to_seconds(table, "Start Time")
    rows, repeated = find_last(site, day)
    every = len(np.unique(day))
    whole = np.bincount(site[rows], minlength=len(names)) == every
    rows = rows[whole[site[rows]]]

    values = np.stack([table.numbers(name) for name in QUARTERS], axis=1)[rows]
    kept = [name for name, complete in zip(names, whole, strict=True) if complete]
    notes = (
        f"{len(names) - len(kept)} of {len(names)} approaches without all {every} days left out",
        f"{repeated} rows of an approach and day that came again replaced by the later ones",
    )
    place = (np.cumsum(whole) - 1)[site[rows]]
    time = day[rows, None] + QUARTER * np.arange(len(QUARTERS))
    return Readings(np.repeat(place, len(QUARTERS)), time.ravel(), values.reshape(-1, 1), kept, VOLUME, notes)


def _ten_sites(table: Table) -> Readings:
    """Read ten columns of quarters of an hour, without times; zeros for hours are outages."""
    values = np.stack([table.numbers(name) for name in TEN], axis=1)
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


def _outage(quarters: Floats) -> Flags:
    """Return the quarters in runs of whole hours without a vehicle; a broken last hour is never one."""
    hours = quarters[: len(quarters) // 4 * 4].reshape(-1, 4).sum(axis=1)
    dead = np.repeat(in_runs(hours == 0, OUTAGE), 4)
    return np.pad(dead, (0, len(quarters) - len(dead)))


def _interstate(table: Table) -> Readings:
    """Read one station, whose hours have a row for every kind of weather."""
    time = to_seconds(table, "date_time")
    hours, first = np.unique(time, return_index=True)
    values = table.numbers("traffic_volume")[first, None]
    notes = (f"{len(time) - len(hours)} further rows of an hour (its other weather) left out",)
    return Readings(np.zeros(len(hours), np.int64), hours, values, ("i-94-station-301",), VOLUME, notes)


def _states(table: Table) -> Readings:
    """Read a series for each state, a reading a day."""
    site, fips = table.codes("FIPS.State.Code")
    notes = ("volumes are millions of vehicles a day",)
    names = [f"state-{code:>02}" for code in fips]
    return Readings(site, to_seconds(table, "date"), table.numbers("stateTraffic")[:, None], names, VOLUME, notes)


def _schema(
    time: str, texts: tuple[str, ...], numbers: tuple[str, ...], positions: tuple[str, ...] = ()
) -> TableSchema:
    named = [Column(time, "time")] if time else []
    named += [Column(name, "text") for name in texts]
    figures = (Column(name, "number", blank="missing") for name in numbers)
    return TableSchema((*named, *figures), positions=positions, clock="wall")


DAY_FIRST = Dialect(dates="dmy")
TEN_SITES = _schema("", (), TEN, positions=TEN)
FORMATS: tuple[tuple[TableSchema, Reader], ...] = (
    (_schema("Start Time", ("SCATS Number", "Location"), QUARTERS), _boroondara),
    (_schema("date_time", ("weather_main",), ("traffic_volume",)), _interstate),
    (_schema("date", ("FIPS.State.Code",), ("stateTraffic",)), _states),
)
"""Columns that identify a set, and its reader."""
