"""Reader of traffic data in all forms, as readings and as series on a regular grid."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from client.data.summary import DataSummary, Dropped, find_repeated
from client.data.tables.cells import escape
from client.data.tables.files import find_tables, load, suffix_of
from client.data.tables.reader import detect_cells, to_table
from client.data.tables.schema import DEFAULT_DIALECT, Dialect
from client.data.tables.table import Table
from client.tasks.traffic.data.public_sets import read_original, read_volumes
from client.tasks.traffic.data.readings import (
    Filled,
    Intervals,
    Readings,
    Tidy,
    adds_up,
    coarser,
    fill,
    intervals,
    join_readings,
    order_variables,
    tidy,
    to_readings,
)
from client.tasks.traffic.data.series import SCHEMA, SITE, SUFFIXES, TIME, Sensors, Series, in_units
from client.tasks.traffic.data.split import split_series
from common.arrays import Floats
from common.errors import DataError
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.vocabulary import DAY, HOUR, SensorVariables, duration
from common.text import count

LONGEST = 20_000_000
"""Steps of a series; more are a mistyped year."""


def to_dataset(readings: Readings, measures: SensorVariables | None, path: Path) -> Sensors:
    """Return series on the grid of the federation's step; without one, an hour or the data's own.

    Readings of the same time are averaged, finer readings added up or averaged (`aggregating.SUMMED`), gaps filled
    (`filling.fill`); a gap at either end is cut off.

    Raises:
        DataError: The readings are coarser than the step, or than a day; no site has readings; a series is absurdly long.
    """
    rows = tidy(readings)
    apart = intervals(rows, len(readings.sites))
    measures = measures or SensorVariables(variables=readings.variables, step_seconds=_own_step(apart.usual))
    step = measures.step_seconds
    if apart.usual > step:
        message = f"readings are {duration(apart.usual)} apart, coarser than the step of {duration(step)}"
        raise DataError(f"{message}; give finer readings, or ask for a longer step that divides a day", path)

    steps = coarser(rows, apart.each, step, adds_up(readings.variables))
    grids = {readings.sites[site]: grid for site, grid in _grids(steps, path)}
    if not grids:
        raise DataError("no site has a reading of every variable", path)
    filled = {name: fill(values, start * step, step) for name, (start, values) in grids.items()}
    series = (Series(name, _time(grids[name][0], step), *filled[name][:2]) for name in sorted(grids))
    notes = (*readings.notes, *_notes_on_rows(rows, apart, measures), *_notes_on_steps(steps, readings, filled))
    return Sensors(tuple(series), measures, notes)


def _own_step(usual: int) -> int:
    """Return an hour, or the data's own interval if that is longer and divides a day."""
    return usual if usual > HOUR and usual % 60 == 0 and DAY % usual == 0 else HOUR


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


def _time(number: int, step: int) -> np.datetime64:
    """Return the time of a step, counted from 1970."""
    count, unit = in_units(step)
    return np.datetime64(number * count, unit)


def _notes_on_rows(rows: Tidy, apart: Intervals, measures: SensorVariables) -> Iterator[str]:
    if rows.unordered:
        yield f"{rows.unordered} readings came after a later one and were put in order"
    if rows.repeated:
        yield (
            f"{rows.repeated} readings of a time already read (a row given twice, or the clock set back) "
            "were averaged with it"
        )
    if 0 < apart.usual < measures.step_seconds:
        how = (
            f"{name} {'added up' if adds else 'averaged'}"
            for name, adds in zip(measures.variables, adds_up(measures.variables), strict=True)
        )
        yield (
            f"readings of {duration(apart.usual)} became readings of {duration(measures.step_seconds)}: {', '.join(how)}"
        )


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
        VocabularyError: They have variables that the federation lacks.
    """
    path = Path(source)
    parts = [(file, _file(file, dialect)) for file in find_tables(path, SUFFIXES)]
    variables = measures.variables if measures else parts[0][1].variables
    return to_dataset(join_readings([order_variables(part, variables, file) for file, part in parts]), measures, path)


def _file(path: Path, dialect: Dialect) -> Readings:
    """Read one file, whose form shows in its first line."""
    content = load(path)
    if suffix_of(path) == ".vol":
        return read_volumes(content)
    cells = detect_cells(content, SCHEMA, dialect)
    return read_original(cells) or to_readings(to_table(cells, SCHEMA, dialect))


MOST_REMARKS = 10
"""Sensors that are named in remarks."""


def summarize(options: TrafficOptions, sensors: Sensors, tables: Sequence[Table]) -> DataSummary:
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
        dropped=tuple(_dropped(sensors, tables)),
        remarks=(
            *remarks[:MOST_REMARKS],
            *[f"… and {len(remarks) - MOST_REMARKS} more"][: len(remarks) > MOST_REMARKS],
        ),
    )


def _dropped(sensors: Sensors, tables: Sequence[Table]) -> Sequence[Dropped]:
    """Return sites that were left out, and readings of a time that was read before."""
    found = []
    names = {series.name for series in sensors.units}
    sites = {name for table in tables if SITE in table for name in table.codes(SITE)[1]}
    if lost := sorted(sites - names):
        reason = "without a reading of every variable left out"
        found.append(Dropped(len(lost), ("site", "sites"), reason, f"site '{escape(lost[0])}'"))
    if all(SITE in table for table in tables):
        reason = "of a time already read (a row given twice, or the clock set back) were averaged with it"
        found += find_repeated(tables, (SITE, TIME), (SITE, TIME), ("reading", "readings"), reason)
    return found
