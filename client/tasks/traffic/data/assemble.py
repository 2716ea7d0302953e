"""Readings at whatever times as series on a regular grid, and what there is to say of it."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from client.tasks.traffic.data.impute import Filled, fill
from client.tasks.traffic.data.readings import Readings
from client.tasks.traffic.data.resample import Intervals, Tidy, adds_up, coarser, intervals, tidy
from client.tasks.traffic.data.series import Sensors, Series, in_units
from common.arrays import Floats
from common.errors import DataError
from common.tasks.traffic.vocabulary import DAY, HOUR, SensorVariables, duration

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
