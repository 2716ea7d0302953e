"""Reader of traffic data in all forms, as readings and as series on a regular grid.

Published sets are recognized by their first line.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow
import pyarrow.compute as pc

from client.data.dataset import DataSummary
from client.data.tables.account import RowAccount, with_account
from client.data.tables.files import Content, find_tables, load, suffix_of
from client.data.tables.reader import by_items, detect_cells, to_table
from client.data.tables.schema import (
    CLOCK,
    DATED,
    DEFAULT_DIALECT,
    Cells,
    Codes,
    Column,
    Dialect,
    TableSchema,
    escape,
    join_rows,
    match_titles,
    quoted,
)
from client.data.tables.table import Table, Unpivoted, to_codes, to_flags, try_float
from client.tasks.traffic.data.readings import (
    SEVERAL,
    VALUE,
    Filled,
    Readings,
    Tidy,
    adds_up,
    coarser,
    fill,
    find_last,
    in_runs,
    intervals,
    order_variables,
    tidy,
    to_readings,
    to_seconds,
    without_strays,
)
from client.tasks.traffic.data.series import SCHEMA, SITE, SUFFIXES, TIME, Sensors, Series, in_units, split_series
from common.arrays import Flags, Floats
from common.errors import DataError
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.vocabulary import DAY, HOUR, SensorVariables, duration
from common.text import count

HOURS = tuple(f"hour_{hour:02d}" for hour in range(24))
WIDTHS = {"record_type": 1, "state_code": 2, "f_system": 2, "station_id": 6, "travel_dir": 1, "travel_lane": 1}
DATE = ("year_record", "month_record", "day_record")
VOLUMES = TableSchema(
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

    unit: Literal["line", "row"] = field(default="line", kw_only=True)

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
        spans = ((stops[k] - self.widths[k], stops[k]) for k in places)
        return [pc.utf8_slice_codeunits(self.lines, start, stop) for start, stop in spans]

    def place_of(self, row: int) -> int:
        """Return the one-based line of a row counted from 0."""
        return self.places[row]


def read_volumes(content: Content, account: RowAccount) -> Readings:
    """Read hourly volumes of stations, all their lanes and directions together.

    Where a direction has a row for all lanes together, its other rows do not count. An hour is missing if one of the lanes
    that the station has in that month is.

    Raises:
        DataError: Not such a file, or a malformed cell (with line and column).
    """
    named = "|" in content.first_line()
    table = to_table(
        detect_cells(content, VOLUMES) if named else FixedWidth.of(content), VOLUMES, Dialect(account=account)
    )
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

    counted, repeated = find_last(stations, direction, lane, day)
    together = np.array([name == ALL_LANES for name in lanes])[lane]
    counted = counted[(together | ~_have((stations, direction, day), together))[counted]]
    site, time, values = _added(
        stations[counted], direction[counted] * len(lanes) + lane[counted], day[counted], volumes[counted]
    )

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

    lanes_of = {(int(a), int(b)): int(count) for (a, b), count in zip(months, expected, strict=True)}
    needed = np.array([lanes_of[int(stations[row]), int(month[row])] for row in first])
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


def read_original(cells: Cells, account: RowAccount) -> Readings | None:
    """Read the published file that has this first line, if it is one.

    Raises:
        DataError: A malformed cell (with line and column).
    """
    for schema, read in FORMATS:
        if set(schema.names) <= set(cells.titles):
            return read(to_table(cells, schema, replace(DAY_FIRST, account=account)))
    path = cells.content.path
    if len(cells.titles) == len(TEN) and path.name.lower().startswith("volume_data.csv"):
        return _ten_sites(to_table(detect_cells(cells.content, TEN_SITES), TEN_SITES, Dialect(account=account)))
    return None


def _boroondara(table: Table) -> Readings:
    """Read a row for each approach and day, of 96 quarters; a client is an approach that has every day.

    Under one label there are two approaches, one after the other (4335 HIGH_ST NE of CHARLES_ST): the later counts.
    """
    labels = (table.columns["SCATS Number"], table.columns["Location"])
    site, names = to_codes(pc.binary_join_element_wise(*labels, " "))
    day = to_seconds(table, "Start Time")
    rows, repeated = find_last(site, day)
    every = len(np.unique(day))
    whole = np.bincount(site[rows], minlength=len(names)) == every
    rows = rows[whole[site[rows]]]

    values = np.stack([table.numbers(name) for name in QUARTERS], axis=1)[rows]
    complete_names = [name for name, complete in zip(names, whole, strict=True) if complete]
    notes = (
        f"{len(names) - len(complete_names)} of {len(names)} approaches without all {every} days left out",
        f"{repeated} rows of an approach and day that came again replaced by the later ones",
    )
    sites = (np.cumsum(whole) - 1)[site[rows]]
    time = day[rows, None] + QUARTER * np.arange(len(QUARTERS))
    return Readings(np.repeat(sites, len(QUARTERS)), time.ravel(), values.reshape(-1, 1), complete_names, VOLUME, notes)


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


READING = "reading", "readings"
REPEATED = "of a time already read (a row given twice, or the clock set back) were averaged with it"
LONGEST = 20_000_000
"""Steps of a series; more are a mistyped year."""


def to_dataset(readings: Readings, measures: SensorVariables | None, path: Path, account: RowAccount) -> Sensors:
    """Return series on the grid of the federation's step; without one, an hour or the data's own.

    Readings of the same time are averaged, finer readings added up or averaged (`aggregating.SUMMED`), gaps filled
    (`filling.fill`); a gap at either end is cut off.

    Raises:
        DataError: The readings are coarser than the step, or than a day; no site has readings; a series is absurdly long.
    """
    tidied = tidy(readings)
    rows = without_strays(tidied)
    apart = intervals(rows, len(readings.sites))
    divides_day = apart.usual % 60 == 0 and DAY % max(apart.usual, 1) == 0
    usual = apart.usual if apart.usual > HOUR and divides_day else HOUR
    measures = measures or SensorVariables(variables=readings.variables, step_seconds=usual)
    step = measures.step_seconds
    if apart.usual > step:
        message = f"readings are {duration(apart.usual)} apart, coarser than the step of {duration(step)}"
        longer = ", or ask for a longer step that divides a day" * (apart.usual <= DAY)
        raise DataError(f"{message}; give finer readings{longer}", path)

    steps = coarser(rows, apart.each, step, adds_up(readings.variables))
    grids = {readings.sites[site]: grid for site, grid in _grids(steps, path)}
    if not grids:
        raise DataError("no site has a reading of every variable", path)
    filled = {name: fill(values, start * step, step) for name, (start, values) in grids.items()}
    lost = np.array([name not in grids for name in readings.sites])
    reading = account.close(_settle(account, readings, (tidied, rows, steps), lost, step))
    count_of_units, unit = in_units(step)
    series = (
        Series(name, np.datetime64(grids[name][0] * count_of_units, unit), *filled[name][:2]) for name in sorted(grids)
    )
    notes = (*readings.notes, *_notes_on_rows(rows), *_notes_on_steps(steps, readings, filled))
    return Sensors(tuple(series), measures, (*notes, *account.notes_of(reading)), reading=reading)


def _settle(account: RowAccount, readings: Readings, stages: tuple[Tidy, Tidy, Tidy], lost: Flags, step: int) -> int:
    """Give the account the rows that are no step of their own, and return the number of the others.

    Args:
        account: RowAccount of all rows.
        readings: One a row, in the order of the files.
        stages: Readings in order of time, those without strays, and their steps.
        lost: S, sites that are left out.
        step: Seconds of a step.
    """
    counted = readings.row != SEVERAL
    of_several = len(account.remaining) - int(counted.sum())
    row, tidied = readings.row[counted], stages[0].group[counted]
    near = stages[1].group[counted]
    number = np.append(stages[2].group, -1)[near]
    has = ~np.isnan(readings.values[counted]).all(axis=1)
    dead = np.append(np.isnan(stages[2].values).all(axis=1), True)[number]
    account.leave(row[lost[readings.site[counted]]], READING, "of sites without a reading of every variable left out")
    account.leave(row[~has], READING, "without a value left out")
    account.leave(row[near < 0], READING, "far from all others of their sensor left out (is a year mistyped?)")
    account.leave(row[dead], READING, "left out, since their step lacks more than half of its readings")
    alive = np.flatnonzero(has & ~dead & ~lost[readings.site[counted]])
    again = np.delete(alive, np.unique(tidied[alive], return_index=True)[1])
    account.leave(row[again], READING, REPEATED, merged=True)
    firsts = np.unique(number[alive], return_index=True)[1]
    how = ", ".join(
        f"{name} {'added up' if adds else 'averaged'}"
        for name, adds in zip(readings.variables, adds_up(readings.variables), strict=True)
    )
    account.leave(
        row[np.delete(alive, firsts)], READING, f"merged into readings of {duration(step)}: {how}", merged=True
    )
    return of_several + len(firsts)


def _grids(steps: Tidy, path: Path) -> Iterator[tuple[int, tuple[int, Floats]]]:
    """Yield each site with readings of every variable: its first step and its values, T × D."""
    there = ~np.isnan(steps.values)
    whole = bool(there.all())
    edges = np.flatnonzero(np.diff(steps.site, prepend=-1, append=-1)).tolist()
    for span in map(slice, edges, edges[1:]):
        if not whole:
            if not there[span].any(axis=0).all():
                continue
            filled = np.flatnonzero(there[span].any(axis=1))
            span = slice(span.start + filled[0], span.start + filled[-1] + 1)
        time, values = steps.time[span], steps.values[span]
        start, length = int(time[0]), int(time[-1] - time[0]) + 1
        if length > LONGEST:
            raise DataError(f"a site's readings span {length} steps; is a year mistyped?", path)
        if length > len(time):
            values = np.full((length, values.shape[1]), np.nan)
            values[time - start] = steps.values[span]
        yield int(steps.site[span.start]), (start, values)


def _notes_on_rows(rows: Tidy) -> Iterator[str]:
    if rows.unordered:
        yield f"{rows.unordered} readings came after a later one and were put in order"


def _notes_on_steps(steps: Tidy, readings: Readings, filled: dict[str, Filled]) -> Iterator[str]:
    if steps.rescaled:
        yield f"{steps.rescaled} readings lacked some of the finer ones they are made of and were scaled up"
    total = sum(one.values.size for one in filled.values())
    gaps = sum(int((~one.observed).sum()) for one in filled.values())
    if gaps:
        weekly = sum(one.by_week for one in filled.values())
        tail = f"; {weekly} of them, in gaps longer than a day, are the mean of the same time of earlier weeks"
        yield f"{gaps} of {total} readings ({gaps / total:.1%}) were missing and interpolated{tail if weekly else ''}"
    if len(filled) < len(readings.sites):
        yield f"{len(readings.sites) - len(filled)} sites without a reading of every variable left out"


def read_series(
    source: Path | str, measures: SensorVariables | None = None, *, dialect: Dialect = DEFAULT_DIALECT
) -> Sensors:
    """Read the series of one source, in the order of their names.

    Args:
        source: Table in long form, `timestamp,site,<variable>…` (CSV, TSV or Parquet; without `site` it is one series,
            named after the file); a published set as a file or folder; FHWA's station volumes (`.vol`); or a folder of
            such files. All may be gzipped.
        measures: Variables and step of the federation. None for the variables of the data, and a step of one hour or, for
            coarser data, their own.
        dialect: Columns and forms of the owner's tables.

    Raises:
        DataError: The data are missing, empty or malformed, lack a variable, or are coarser than the step.
        VocabularyError: They have no variable of the federation, or files of several variables.
    """
    path, dialect = Path(source), with_account(dialect, SCHEMA)
    variable = measures.variables[0] if measures and len(measures.variables) == 1 else ""
    files = [(file, _file(file, dialect, variable)) for file in find_tables(path, SUFFIXES)]
    variables = measures.variables if measures else files[0][1].variables
    ordered = [order_variables(found, variables, file, skips=measures is not None) for file, found in files]
    readings = join_rows(ordered, {"site": "sites"})
    notes = tuple(dict.fromkeys(note for found in ordered for note in found.notes))
    return to_dataset(replace(readings, notes=notes), measures, path, dialect.account)


def _file(path: Path, dialect: Dialect, variable: str) -> Readings:
    """Read one file, whose form shows in its first line."""
    content = load(path, dialect.encoding, dialect.skip_lines)
    if suffix_of(path) == ".vol":
        return read_volumes(content, dialect.account)
    cells = detect_cells(content, SCHEMA, dialect)
    if published := read_original(cells, dialect.account):
        return published
    if dates := _dates_of(cells):
        dated = replace(SCHEMA, wide=(TIME, variable or VALUE))
        cells, dialect = by_items(cells, dated, dialect, dates), replace(dialect, columns={}, wide=False)
    if len(calendar := [title for _, title in cells.titled() if CALENDAR.fullmatch(title)]) > 2:
        raise cells.header_error(
            f"'{calendar[0]}' to '{calendar[-1]}' are columns of days or months; save a row for each day"
        )
    if not dialect.wide and (minutes := _minutes_of(cells)):
        cells, dialect = _by_hours(cells, minutes, variable or VALUE, dialect)
    return to_readings(to_table(cells, SCHEMA, dialect), wide=dialect.wide, variable=variable)


def _dates_of(cells: Cells) -> dict[int, str]:
    """Return the date of each column that is titled with one, if there are three or more; else nothing."""
    date = re.compile(rf"{DATED.pattern}|\d\d?/\d\d?/\d\d$|(\d{{4}}-\d\d)$")
    found = {k: match for k, title in cells.titled() if (match := date.match(title))}
    return {k: one.string + "-01" * bool(one[2]) for k, one in found.items()} if len(found) > 2 else {}


CALENDAR = re.compile(
    "(?i)(jan|feb|mar|apr|ma[iy]|ju[nl]|aug|sep|o[ck]t|nov|de[cz]|mon|tue|wed|thu|fri|sat|sun)[a-z]*|mo|di|mi|do|fr|sa|so"
)
HOUR_TITLE = re.compile(r"(?i)(?:h|hr|he|hour)?[ _.-]*(\d\d?)(?:[:.h]?(\d\d))?(?: ?([ap])m)?(?: *[-–] *\S+)?")
"""Title of a column of the readings at a time of the day."""


def _minutes_of(cells: Cells) -> dict[int, int]:
    """Return the minute of each column of a time of the day, if such columns make a day; else nothing.

    Raises:
        DataError: Columns of hours exceed a day.
    """
    found = {k: match for k, title in cells.titled() if (match := HOUR_TITLE.fullmatch(title))}
    minutes = {
        k: 60 * (int(one[1]) % 12 + 12 * (one[3] in "pP") if one[3] else int(one[1])) + int(one[2] or 0)
        for k, one in found.items()
    }
    day, first = DAY // 60, min(minutes.values(), default=0)
    beyond = [cells.titles[k] for k, at in minutes.items() if at >= first + day and not cells.titles[k].isdecimal()]
    if beyond and len(minutes) > 24:
        raise cells.header_error(f"more than 24 hours; say {' '.join(f'--ignore {quoted(title)}' for title in beyond)}")
    step = day // max(len(minutes), 1)
    is_day = (
        len(minutes) >= 24 and first in (0, step) and sorted(minutes.values()) == [*range(first, first + day, step)]
    )
    return {k: at - first for k, at in minutes.items()} if is_day else {}


def _by_hours(cells: Cells, minutes: Mapping[int, int], variable: str, dialect: Dialect) -> tuple[Cells, Dialect]:
    """Return cells with a row for each time of the day, in place of columns H00 to H23, and their dialect.

    Times that have a clock already have such columns for something else; they are unchanged.

    Raises:
        DataError: There is no column of dates, or another one holds numbers, which are not by the hour.
    """
    places = match_titles(cells, SCHEMA, dialect)
    dates = [k for name, k in places.items() if name.partition(CLOCK)[0] == TIME]
    others = [k for k, _ in cells.titled() if k not in minutes and k not in dates]
    first = [str([*column.slice(0, 1).to_pylist(), ""][0]) for column in cells.take([*dates[:1], *others])]
    if ":" in first.pop(0):
        return cells, dialect
    of_day = [cells.titles[k] for k, cell in zip(others, first, strict=True) if try_float(cell) is not None]
    if beside := [title for title in of_day if title != cells.titles[places.get(SITE, dates[0])]]:
        remedy = " ".join(f"--ignore {quoted(title)}" for title in beside)
        remedy += "" if SITE in places else f", or --column site={quoted(beside[0])} if it names sensors"
        raise cells.header_error(f"holds numbers beside columns of hours; say {remedy}", escape(beside[0]))
    clocks = {k: f"{at // 60:02}:{at % 60:02}" for k, at in minutes.items()}
    long = Unpivoted.of(cells, [*dates, *others], clocks, ["", variable], dialect)
    *cells_of_day, clock, values = long.columns
    date = pc.binary_join_element_wise(*cells_of_day[: len(dates)], "-") if dates[1:] else cells_of_day[0]
    titles = [SITE if k == places.get(SITE) else cells.titles[k] for k in others]
    ends = [cells.titles[k] for k in (min(minutes), max(minutes))]
    dialect.notes.append(f"columns '{ends[0]}' to '{ends[1]}' are times of a day, read from {min(clocks.values())} on")
    columns = [pc.binary_join_element_wise(date, clock, " "), *cells_of_day[len(dates) :], values]
    return replace(long, titles=[TIME, *titles, variable], columns=columns), replace(dialect, columns={})


MOST_REMARKS = 10
"""Sensors that are named in remarks."""


def summarize(options: TrafficOptions, sensors: Sensors) -> DataSummary:
    """Return readings of each sensor, and its windows to train on and held out."""
    step, window = sensors.vocabulary.step_seconds, options.history + options.horizon
    splits = [split_series(series, options, step) for series in sensors.units]
    train, test = (np.array([len(getattr(one, part)) for one in splits], np.int64) for part in ("train", "test"))
    remarks = [
        f"sensor '{escape(series.name)}' has {count(len(series.values), 'reading')} of {duration(step)}; "
        f"the first window needs {window}"
        for series, windows in zip(sensors.units, train.tolist(), strict=True)
        if not windows
    ]
    return DataSummary(
        record=("reading", "readings"),
        records=np.array([len(series.values) for series in sensors.units], np.int64),
        train=train,
        test=test,
        example=("window", "windows"),
        need=f"a window needs {options.history} + {options.horizon} readings (tasks.traffic.history and horizon)",
        totals={"variable": len(sensors.vocabulary.variables)},
        remarks=(
            *remarks[:MOST_REMARKS],
            *[f"… and {len(remarks) - MOST_REMARKS} more"][: len(remarks) > MOST_REMARKS],
        ),
    )
