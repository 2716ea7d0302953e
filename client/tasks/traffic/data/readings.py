"""Readings as rows in order of time, on a coarser grid, with gaps filled."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow

from client.data.tables.files import stem_of
from client.data.tables.schema import Codes, combine_codes, escape, quoted, sort_unique
from client.data.tables.table import Table, to_codes, to_text
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
        row: R, numbers of the rows in the account; `SEVERAL` where readings and rows differ in number.
    """

    site: Codes
    time: Ints
    values: Floats
    sites: Sequence[str]
    variables: tuple[str, ...]
    notes: tuple[str, ...] = ()
    row: Codes = field(default_factory=lambda: np.zeros(0, np.int64))

    def __post_init__(self) -> None:
        if len(self.row) != len(self.site):
            object.__setattr__(self, "row", np.full(len(self.site), SEVERAL))


SEVERAL = -1
VALUE = "value"
"""Variable of a table with a column a sensor."""


def to_readings(table: Table, *, wide: bool = False, variable: str = "") -> Readings:
    """Return the readings of a table in long form; without a site it is one series, named after the file.

    Args:
        table: Rows under the names of `SCHEMA`.
        wide: True if each further column is a sensor, with readings of one variable.
        variable: Name of that variable; empty for `value`.

    Raises:
        DataError: It has no variable, or many readings of one time that a column separates.
    """
    if not table.variables:
        message = "no variable among the columns; add one for each measurement, such as volume; the titles are "
        raise DataError(message + ", ".join(map(escape, table.cells.titles[:20])), table.path, table.cells.header_line)
    site, names = table.codes(SITE) if SITE in table else (np.zeros(len(table), np.int64), [stem_of(table.path)])
    values = np.stack([table.numbers(name) for name in table.variables], axis=1)
    time = to_seconds(table, TIME)
    if wide:
        sensors = np.tile(np.arange(len(table.variables)), len(table))
        times = np.repeat(time, len(table.variables))
        return Readings(sensors, times, values.reshape(-1, 1), list(table.variables), (variable or VALUE,))
    _check_single(table, combine_codes(site, time))
    return Readings(site, time, values, names, table.variables, row=table.numbered)


def _check_single(table: Table, moment: Codes) -> None:
    """Accept rows with times of their own, or that no column of few values separates.

    Raises:
        DataError: Such a column names sensors or variables, whose readings would be averaged.
    """
    again = len(moment) - len(np.unique(moment))
    read = {part for name in (TIME, SITE) if name in table for part in table.titles[name].split("+")}
    free = [(k, title) for k, title in table.cells.titled() if title and title not in ("table", *read)]
    few = dict[str, tuple[Codes, list[str]]]()
    for k, title in free if again >= FEWEST and 10 * again > len(moment) else ():
        codes, values = to_codes(to_text(table.cells.take([k])[0].take(pyarrow.array(table.rows))))
        if 1 < len(values) <= 4 * len(moment) / (len(moment) - again):
            few[title] = codes, values
    for titles in (*((title,) for title in few), *combinations(few, 2)):
        if len(np.unique(combine_codes(moment, *(few[title][0] for title in titles)))) == len(moment):
            problem = f"separates {again:,} readings from others of the same time, which would be averaged"
            choice = " ".join(f"--where {quoted(f'{title}={few[title][1][0]}')}" for title in titles)
            is_variable = SITE in table or titles == ("_field",)  # of InfluxDB, which numbers its tables
            choice = choice if is_variable else f"--column site={quoted('+'.join(titles))}"
            remedy = f"say {choice}, or {' '.join(f'--ignore {quoted(title)}' for title in titles)} to average them"
            raise table.cells.header_error(f"{problem}; {remedy}", escape("+".join(titles)))


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
REGIME, FEWEST, MONTH = 8, 10, 30 * DAY
"""Readings that show a change of interval; readings and seconds from which on there are strays."""
STEADY, NEAR = 0.25, 0.25
"""Least concentration of a clock's places in intervals, and the most that is jitter around 0."""
DIVISORS = np.flatnonzero(DAY % np.arange(1, DAY + 1) == 0) + 1
"""Seconds."""


@dataclass(frozen=True, eq=False)
class Tidy:
    """R readings by site, then time, no time of a site twice.

    Args:
        site: R, codes.
        time: R, in seconds or steps.
        values: R × D, not-a-number where missing.
        group: Of the readings that were put in order or in steps, the place of each among these.
        unordered: Readings that came after a later one of their site.
        rescaled: Steps that lacked some of their finer readings.
    """

    site: Ints
    time: Ints
    values: Floats
    group: Ints
    unordered: int = 0
    rescaled: int = 0

    def where(self, chosen: Flags) -> "Tidy":
        """Return the readings for which a flag is true; the group of the others is -1."""
        group = np.where(chosen, np.cumsum(chosen) - 1, -1)[self.group]
        return replace(self, site=self.site[chosen], time=self.time[chosen], values=self.values[chosen], group=group)


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
    group = np.empty(len(site), np.int64)
    group[order] = _groups(first, len(site))
    if len(first) == len(site):
        return Tidy(site, time, values, group, _unordered(readings))
    sums, counts = _totals(values, first)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return Tidy(site[first], time[first], means, group, _unordered(readings))


def without_strays(rows: Tidy) -> Tidy:
    """Return the readings without those far from all others of their site: a mistyped year.

    They are at most 1% at either end, or one, and further off than twice the time that the others span, and a month.
    """
    ends = np.flatnonzero(np.diff(rows.site, prepend=-1, append=-1))
    starts, stops = ends[:-1], ends[1:]
    few = np.where(stops - starts >= FEWEST, np.maximum((stops - starts) // 100, 1), 0)
    low, high = rows.time[starts + few], rows.time[stops - 1 - few]
    far = np.maximum(2 * (high - low), MONTH)
    low, high = (np.repeat(edge, stops - starts) for edge in (low - far, high + far))
    stray = ((rows.time < low) | (rows.time > high)) & np.repeat(few > 0, stops - starts)
    return rows.where(~stray) if stray.any() else rows


def local_spacing(rows: Tidy, each: Ints) -> Ints:
    """Return the seconds between readings at each reading, R.

    It is that of its site, unless `REGIME` readings in a row are further apart or nearer, all alike: the interval changed.
    """
    spacing = each[rows.site]
    apart = np.diff(rows.time)
    if not len(apart) or (apart == spacing[1:]).all():
        return spacing
    same = np.diff(rows.site) == 0
    alike = same[1:] & same[:-1] & (np.abs(np.diff(apart)) <= ALIKE * np.minimum(apart[1:], apart[:-1]))
    begins = np.flatnonzero(np.append(True, ~alike))
    lengths = np.diff(begins, append=len(apart))
    mean = np.rint((rows.time[begins + lengths] - rows.time[begins]) / lengths).astype(np.int64)
    meant = DIVISORS[np.clip(np.searchsorted(DIVISORS, mean * (1 - EXACT)), 0, len(DIVISORS) - 1)]
    mean = np.where(np.abs(meant - mean) <= EXACT * mean, meant, mean)
    usual = each[rows.site[begins]]
    other = (lengths >= REGIME) & same[begins] & (np.abs(mean - usual) > ALIKE * usual)
    is_last = begins + lengths == len(same)  # reading of the site
    kept_on = ~same[np.minimum(begins + lengths, len(same) - 1)] | is_last
    for begin, length, seconds, to_end in zip(
        *(of[other].tolist() for of in (begins, lengths, mean, kept_on)), strict=True
    ):
        spacing[begin : begin + length + to_end] = seconds
    return spacing


def snapped(rows: Tidy, spacing: Ints, step: int) -> Ints:
    """Return the times without the jitter of clocks, each at the nearest of equal intervals, R.

    Intervals begin where the clock of a site usually stands in them; if that is near their begin, exactly there. Readings
    without a usual place, and finer ones, are left as they are.
    """
    unit = np.where(step % np.maximum(spacing, 1) == 0, spacing, np.where(spacing % step == 0, step, 0))
    apart = np.where(np.diff(rows.site) == 0, np.diff(rows.time), 2**60)
    nearest = np.minimum(np.append(apart, 2**60), np.insert(apart, 0, 2**60))
    unit = np.where((spacing > 0) & (2 * nearest >= unit), unit, 0)  # finer readings among others stay where they are
    safe = np.maximum(unit, 1)
    if not (rows.time % safe).any():
        return rows.time
    angle = 2j * np.pi * (rows.time % safe) / safe
    sites = int(rows.site.max()) + 1
    turned = np.exp(angle) * (unit > 0)
    mean = np.bincount(rows.site, turned.real, sites) + 1j * np.bincount(rows.site, turned.imag, sites)
    steady = np.abs(mean) >= STEADY * np.bincount(rows.site, minlength=sites)
    phase = np.angle(mean) / (2 * np.pi)
    phase = np.where(np.abs(phase) <= NEAR, 0.0, phase)[rows.site] * safe
    nearest = np.floor((rows.time - phase) / safe + 0.5) * safe + np.rint(phase)
    return np.where(steady[rows.site] & (unit > 0), nearest.astype(np.int64), rows.time)


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
    local = local_spacing(rows, np.where(each > 0, each, step))
    number = snapped(rows, local, step) // step
    first = _changes(rows.site, number)
    group = _groups(first, len(number))
    spacing = local[first, None]
    if len(first) == len(number) and (spacing == step).all():
        return replace(rows, time=number, group=group)
    sums, counts = _totals(rows.values, first)
    whole = np.maximum(step / spacing, 1)
    means = np.where(2 * counts >= whole, sums / np.maximum(counts, 1), np.nan)
    added = np.where((counts == whole) | (counts > 2 * whole), sums, means * whole)
    values = np.where(summed, added, means)

    part = (2 * counts >= whole) & (counts + 1 <= whole)
    steps = replace(rows, site=rows.site[first], time=number[first], values=values, group=group)
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


def _groups(first: Ints, length: int) -> Ints:
    """Return the number of each row's group; each begins at one of `first`."""
    return np.repeat(np.arange(len(first)), np.diff(first, append=length))


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
