"""Readings in order of time, each time once, and finer readings as coarser ones."""

from dataclasses import dataclass, replace

import numpy as np

from client.data.tables.codes import combine_codes, sort_unique
from client.tasks.traffic.data.readings import Readings
from common.arrays import Flags, Floats, Ints
from common.tasks.traffic.vocabulary import DAY

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
    parts = np.split(apart, np.searchsorted(site, np.arange(1, sites)))
    return Intervals(np.array([_spacing(part) for part in parts], np.int64), _spacing(apart))


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
    kept = replace(rows, site=rows.site[first], time=number[first], values=values)
    return replace(kept, rescaled=int(part.any(axis=1).sum()))


def adds_up(variables: tuple[str, ...]) -> Flags:
    """Return D flags: True for variables that `SUMMED` names."""
    words = [name.lower().replace("-", "_").replace(" ", "_").split("_") for name in variables]
    return np.array([not SUMMED.isdisjoint(parts) for parts in words])


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
