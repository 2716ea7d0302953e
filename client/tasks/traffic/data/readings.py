"""Readings as rows in order of time, on a coarser grid, with gaps filled."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from client.data.tables.files import stem_of
from client.data.tables.schema import Codes, combine_codes, sort_unique
from client.data.tables.table import Table
from client.tasks.traffic.data.series import SITE, TIME
from common.arrays import Flags, Floats, Ints
from common.errors import DataError, VocabularyError
from common.tasks.traffic.vocabulary import DAY
from common.text import count


@dataclass(frozen=True, eq=False)
class Readings:
    """R readings of S sites, in any order.

    Args:
        site: R, codes into `sites`.
        time: R, when a reading's interval begins by the sensor's own clock, in seconds from 1970.
        values: R × D, not-a-number where a cell is empty.
        sites: Names, S.
        variables: Names, D.
        notes: As `Dataset.notes`.
    """

    site: Codes
    time: Ints
    values: Floats
    sites: Sequence[str]
    variables: tuple[str, ...]
    notes: tuple[str, ...] = ()


def to_readings(table: Table) -> Readings:
    """Return the readings of a table in long form; without a site it is one series, named after the file.

    Raises:
        DataError: It has no variable.
    """
    if not table.variables:
        message = "no variable among the columns; add one for each measurement, such as volume"
        raise DataError(message, table.path, table.cells.header_line)
    site, names = table.codes(SITE) if SITE in table else (np.zeros(len(table), np.int64), [stem_of(table.path)])
    values = np.stack([table.numbers(name) for name in table.variables], axis=1)
    return Readings(site, to_seconds(table, TIME), values, names, table.variables)


def to_seconds(table: Table, name: str) -> Ints:
    """Return a column of times as whole seconds from 1970 by the sensor's own clock, R."""
    return np.floor(table.numbers(name)).astype(np.int64)


def find_last(*keys: Codes) -> tuple[Codes, int]:
    """Return the rows, in order, that are the last with their keys, R each; and how many are not."""
    backwards = combine_codes(*keys)[::-1]
    _, last = np.unique(backwards, return_index=True)
    return np.sort(len(backwards) - 1 - last), len(backwards) - len(last)


def order_variables(readings: Readings, variables: tuple[str, ...], path: Path, *, skips: bool) -> Readings:
    """Return the same readings with their columns in the order of `variables`.

    With `skips`, others are left out and counted in a note.

    Raises:
        VocabularyError: They have others without `skips`, or no other.
        DataError: They lack one of `variables`.
    """
    unknown = [name for name in readings.variables if name not in variables]
    if unknown and not (skips and len(unknown) < len(readings.variables)):
        message = f"not among the variables of the federation or of the first file, {_list(variables)}"
        raise VocabularyError(f"{message}; leave {_list(unknown)} out", path, 1, unknown[0])
    if unknown:
        note = f"{count(len(unknown), 'variable')} skipped that the vocabulary lacks: {_list(unknown)}"
        readings = replace(readings, notes=(*readings.notes, note))
    missing = [name for name in variables if name not in readings.variables]
    if missing:
        raise DataError(f"this variable is missing; the data need {_list(variables)}", path, 1, missing[0])
    columns = [readings.variables.index(name) for name in variables]
    return replace(readings, values=readings.values[:, columns], variables=variables)


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


SUMMED = {
    *("volume", "volumes", "count", "counts", "flow", "vehicles", "cars", "trucks", "buses", "motorcycles", "bicycles"),
    *("pedestrians", "passengers", "trips", "traffic", "total", "sum", "rain", "snow", "co2", "fuel"),
}
"""Words in the names of variables that add up when finer readings become a coarser one.

Every other variable (speed, occupancy, temperature, …) is averaged."""

ALIKE, EXACT = 0.1, 0.01
"""Relative differences of equal spacings, and of a spacing from a divisor of a day."""
DIVISORS = np.flatnonzero(DAY % np.arange(1, DAY + 1) == 0) + 1
"""Seconds."""


@dataclass(frozen=True, eq=False)
class Tidy:
    """R readings by site, then time, no time of a site twice.

    Args:
        site: R, codes.
        time: R, in seconds or steps.
        values: R × D, not-a-number where missing.
        unordered: Readings that came after a later one of their site.
        repeated: Readings of a time that was already read.
        rescaled: Steps that lacked some of their finer readings.
    """

    site: Ints
    time: Ints
    values: Floats
    unordered: int = 0
    repeated: int = 0
    rescaled: int = 0


@dataclass(frozen=True, eq=False)
class Intervals:
    """Seconds between readings: the most frequent spacing (`_spacing`); 0 if unknown.

    Args:
        each: S, of every site.
        usual: Over all sites.
    """

    each: Ints
    usual: int


def tidy(readings: Readings) -> Tidy:
    """Put readings in order; those of the same site and time become their mean."""
    order = np.argsort(combine_codes(readings.site, readings.time), kind="stable")
    site, time, values = readings.site[order], readings.time[order], readings.values[order]
    first = _changes(site, time)
    if len(first) == len(site):
        return Tidy(site, time, values, _unordered(readings))
    sums, counts = _totals(values, first)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return Tidy(site[first], time[first], means, _unordered(readings), len(site) - len(first))


def intervals(rows: Tidy, sites: int) -> Intervals:
    """Return the spacing of the readings of `sites` sites."""
    same = np.diff(rows.site) == 0
    site, apart = rows.site[1:][same], np.diff(rows.time)[same]
    of_sites = np.split(apart, np.searchsorted(site, np.arange(1, sites)))
    return Intervals(np.array([_spacing(part) for part in of_sites], np.int64), _spacing(apart))


def coarser(rows: Tidy, each: Ints, step: int, summed: Flags) -> Tidy:
    """Return readings of whole steps, whose times are numbers of steps since 1970.

    A step with less than half of its finer readings is missing; one with more, but not all, counts as if the others were
    like them. Where there are more than twice as many as usual they are finer still, and add up as they are.

    Args:
        rows: Readings of any spacing.
        each: S, seconds between the readings of each site, or 0.
        step: In seconds.
        summed: D, whether a variable adds up; the others are averaged.
    """
    number = rows.time // step
    first = _changes(rows.site, number)
    spacing = np.where(each > 0, each, step)[rows.site[first], None]
    if len(first) == len(number) and (spacing == step).all():
        return replace(rows, time=number)
    sums, counts = _totals(rows.values, first)
    whole = np.maximum(step / spacing, 1)
    means = np.where(2 * counts >= whole, sums / np.maximum(counts, 1), np.nan)
    added = np.where((counts == whole) | (counts > 2 * whole), sums, means * whole)
    values = np.where(summed, added, means)

    part = (2 * counts >= whole) & (counts + 1 <= whole)
    steps = replace(rows, site=rows.site[first], time=number[first], values=values)
    return replace(steps, rescaled=int(part.any(axis=1).sum()))


def adds_up(variables: tuple[str, ...]) -> Flags:
    """Return D flags: True for variables that `SUMMED` names."""
    words = [name.lower().replace("-", "_").replace(" ", "_").split("_") for name in variables]
    return np.array([not SUMMED.isdisjoint(name) for name in words])


def _spacing(apart: Ints) -> int:
    """Return the most frequent seconds between readings, the smallest of several; 0 where there is none.

    Where most rows of a regular series are missing, chance may put twice or thrice its interval first. Then the interval
    itself is at least half as frequent, and the sum of both, which a mere change of interval does not leave, a quarter. Clocks
    that drift or jitter mean the divisor of a day within `EXACT` of their median.
    """
    if not len(apart):
        return 0
    ordered = apart if apart.min() == apart.max() else np.sort(apart)
    found = sort_unique(ordered)
    often = _alike(ordered, found)
    first = int(np.argmax(often))
    part = (2 * found < (1 + ALIKE) * found[first]) & (2 * often >= often[first])
    part &= 4 * _alike(ordered, found + found[first]) >= often[first]
    near = found[int(np.argmax(part)) if part.any() else first]

    alike = ordered[(ordered >= near * (1 - ALIKE)) & (ordered <= near * (1 + ALIKE))]
    middle = int(alike[(len(alike) - 1) // 2])
    meant = int(DIVISORS[np.argmin(np.abs(DIVISORS - middle))])
    return meant if abs(meant - middle) <= EXACT * middle else middle


def _alike(ordered: Ints, seconds: Ints) -> Ints:
    """Return how many spacings, in ascending order, are like each of `seconds`."""
    below = np.searchsorted(ordered, seconds * (1 - ALIKE))
    return np.searchsorted(ordered, seconds * (1 + ALIKE), side="right") - below


def _changes(site: Ints, time: Ints) -> Ints:
    """Return the rows that differ from the row before in site or time, the first included."""
    new = (np.diff(site, prepend=-1) != 0) | (np.diff(time, prepend=time[:1]) != 0)
    return np.flatnonzero(new)


def _totals(values: Floats, first: Ints) -> tuple[Floats, Ints]:
    """Sum and number of what is there in each group of rows, groups × D."""
    there = ~np.isnan(values)
    sums = np.add.reduceat(np.where(there, values, 0), first, axis=0)
    return sums, np.add.reduceat(there, first, axis=0, dtype=np.int64)


def _unordered(readings: Readings) -> int:
    if (np.diff(readings.time) >= 0).all():
        return 0
    order = np.argsort(readings.site, kind="stable")
    return int(((np.diff(readings.site[order]) == 0) & (np.diff(readings.time[order]) < 0)).sum())


WEEK = 7 * DAY
"""Seconds."""


class Filled(NamedTuple):
    """A series without gaps.

    Args:
        values: T × D.
        observed: T × D, false where a gap was filled.
        by_week: Readings that were filled with the mean of their time of the week.
    """

    values: Floats
    observed: Flags
    by_week: int


def fill(values: Floats, second: int, step: int) -> Filled:
    """Fill the gaps of each variable by itself.

    They are filled linearly, at the ends with the nearest reading; a gap of more than a day with the mean of the earlier
    readings at the same time of the week, if there are any. So a history that ends with a reading holds nothing later.

    Args:
        values: T × D, not-a-number in gaps; every column has a reading.
        second: Time of the first row, in seconds from 1970.
        step: Seconds between rows.
    """
    observed = ~np.isnan(values)
    slot, day = second % WEEK // step, DAY // step
    columns, weekly = zip(*(_filled(column, slot, day) for column in values.T), strict=True)
    return Filled(np.stack(columns, axis=1), observed, sum(weekly))


def in_runs(flags: Flags, least: int) -> Flags:
    """Return T flags: True inside a run of at least `least` True flags."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    starts, stops = edges[::2], edges[1::2]
    long = stops - starts >= least
    change = np.zeros(len(flags) + 1, np.int64)
    change[starts[long]] += 1
    change[stops[long]] -= 1
    return np.asarray(np.cumsum(change[:-1]) > 0)


def _filled(column: Floats, slot: int, day: int) -> tuple[Floats, int]:
    missing = np.isnan(column)
    if not missing.any():
        return column, 0
    there = np.flatnonzero(~missing)
    straight = np.interp(np.arange(len(column)), there, column[there])

    count, total = (_so_far(each, slot, 7 * day) for each in (~missing, np.where(missing, 0.0, column)))
    by_week = in_runs(missing, day + 1) & (count > 0)
    usual = np.where(by_week, total / np.maximum(count, 1), straight)
    return np.where(missing, usual, column), int(by_week.sum())


def _so_far(values: Floats | Flags, slot: int, week: int) -> Floats:
    """Return sums of values up to each one at the same time of the week, T; the first is at `slot`."""
    weeks = np.zeros((-(-(slot + len(values)) // week), week))
    span = slice(slot, slot + len(values))
    weeks.ravel()[span] = values
    return np.cumsum(weeks, axis=0).ravel()[span]
