"""Public traffic counts as published, recognized by their first line; hourly FHWA volumes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.compute as pc

from client.data.tables.cells import Cells, Codes
from client.data.tables.files import Content
from client.data.tables.reader import detect_cells, to_table
from client.data.tables.schema import Column, Dialect, TableSchema
from client.data.tables.table import Table, to_codes, to_flags
from client.tasks.traffic.data.readings import Readings, find_last, in_runs, to_seconds
from common.arrays import Flags, Floats

HOURS = tuple(f"hour_{hour:02d}" for hour in range(24))
WIDTHS = {"record_type": 1, "state_code": 2, "f_system": 2, "station_id": 6, "travel_dir": 1, "travel_lane": 1}
DATE = ("year_record", "month_record", "day_record")
SCHEMA = TableSchema(
    (
        *(Column(name, "text") for name in ("record_type", "state_code", "station_id")),
        *(Column(name, "text", blank="missing") for name in ("travel_dir", "travel_lane")),
        *(Column(name, "number") for name in DATE),
        *(Column(name, "number", blank="missing") for name in HOURS),
    )
)

RECORDS = ("3", "v")
"""Record type of a volume: by columns, by name."""
SHORT_YEAR = 141
"""Characters of a row whose year has two digits; two more with four."""

ALL_LANES = "0"
"""Lane of a row that counts all lanes of its direction together."""


@dataclass(frozen=True, eq=False)
class FixedWidth(Cells):
    """Columns of fixed width.

    Args:
        lines: Lines of text.
        places: One-based place of each line.
        widths: Characters of each column.
    """

    lines: Any
    places: Sequence[int]
    widths: Sequence[int]

    unit: ClassVar[Literal["line", "row"]] = "line"

    @classmethod
    def of(cls, content: Content) -> "FixedWidth":
        """Detect the number of digits of years by the length of the lines."""
        places, lines = zip(*content.lines(), strict=True)
        year = 4 if max(map(len, lines)) > SHORT_YEAR else 2
        widths = {**WIDTHS, "year_record": year, "month_record": 2, "day_record": 2, "day_of_week": 1}
        widths |= dict.fromkeys(HOURS, 5)
        return cls(content, list(widths), pyarrow.array(lines), places, list(widths.values()))

    def take(self, places: Sequence[int]) -> list[Any]:
        """Return the columns at these places as text."""
        stops = np.cumsum(self.widths).tolist()
        spans = ((stops[place] - self.widths[place], stops[place]) for place in places)
        return [pc.utf8_slice_codeunits(self.lines, start, stop) for start, stop in spans]

    def place_of(self, row: int) -> int:
        """Return the one-based line of a row counted from 0."""
        return self.places[row]


def read_volumes(content: Content) -> Readings:
    """Read hourly volumes of stations, all their lanes and directions together.

    Where a direction has a row for all lanes together, its other rows do not count. An hour is missing if one of the lanes
    that the station has in that month is.

    Raises:
        DataError: Not such a file, or a malformed cell (with line and column).
    """
    named = "|" in content.first_line()
    table = to_table(detect_cells(content, SCHEMA) if named else FixedWidth.of(content), SCHEMA)
    kinds = pc.utf8_lower(table.columns["record_type"])
    other = ~to_flags(pc.is_in(kinds, value_set=pyarrow.array(RECORDS)))
    if other.any():
        raise table.error("record_type", other, "is not a traffic volume record (3 or V)", "leave the row out")
    return _summed(table)


def _summed(table: Table) -> Readings:
    labels = (table.columns["state_code"], table.columns["station_id"])
    stations, names = to_codes(pc.binary_join_element_wise(*labels, "-"))
    direction, _ = to_codes(pc.fill_null(table.columns["travel_dir"], ""))
    lane, lanes = to_codes(pc.fill_null(table.columns["travel_lane"], ""))
    day = _days(table)
    volumes = np.stack([table.numbers(name) for name in HOURS], axis=1)

    kept, repeated = find_last(stations, direction, lane, day)
    together = np.array([name == ALL_LANES for name in lanes])[lane]
    kept = kept[(together | ~_have((stations, direction, day), together))[kept]]
    site, time, values = _added(stations[kept], direction[kept] * len(lanes) + lane[kept], day[kept], volumes[kept])

    notes = (f"{repeated} rows of a lane and day that came again replaced by the later ones",) if repeated else ()
    hours = time[:, None] * 86_400 + 3_600 * np.arange(24)
    return Readings(np.repeat(site, 24), hours.ravel(), values.reshape(-1, 1), names, ("volume",), notes)


def _days(table: Table) -> Codes:
    """Return days since 1970, R; years of two digits are 1970 to 2069.

    Raises:
        DataError: There is no such day.
    """
    year, month, day = (table.numbers(name).clip(0, 9999).astype(np.int64) for name in DATE)
    full = np.where(year < 70, year + 2000, np.where(year < 100, year + 1900, year))
    months = ((full - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1)
    no_month, no_day = (month < 1) | (month > 12), days.astype("datetime64[M]") != months
    for name, wrong in (("month_record", no_month), ("day_record", no_day)):
        if wrong.any():
            raise table.error(name, wrong, "is not in the calendar", "correct it, or leave the row out")
    return days.astype(np.int64)


def _have(keys: tuple[Codes, ...], flags: Flags) -> Flags:
    """Return R flags: True if any row with the same keys is flagged."""
    _, group = np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)
    return np.asarray(np.bincount(group, flags, minlength=group.max() + 1)[group] > 0)


def _added(stations: Codes, lane: Codes, day: Codes, volumes: Floats) -> tuple[Codes, Codes, Floats]:
    """Return station, day and 24 sums over lanes for each station's day."""
    month = day.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    lanes = np.unique(np.stack([stations, month, lane], axis=1), axis=0)
    months, expected = np.unique(lanes[:, :2], axis=0, return_counts=True)

    days, first, group = np.unique(np.stack([stations, day], axis=1), axis=0, return_index=True, return_inverse=True)
    sums, counts = np.zeros((len(days), 24)), np.zeros((len(days), 24), np.int64)
    np.add.at(sums, group, np.nan_to_num(volumes))
    np.add.at(counts, group, ~np.isnan(volumes))

    place = {(int(a), int(b)): int(count) for (a, b), count in zip(months, expected, strict=True)}
    needed = np.array([place[int(stations[row]), int(month[row])] for row in first])
    return days[:, 0], days[:, 1], np.where(counts == needed[:, None], sums, np.nan)


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
