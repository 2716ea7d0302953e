"""Readings in order of time, each time once, and finer readings as coarser ones."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from client.data.traffic.readings import Readings

SUMMED = {
    *("volume", "volumes", "count", "counts", "flow", "vehicles", "cars", "trucks", "buses", "motorcycles", "bicycles"),
    *("pedestrians", "passengers", "trips", "traffic", "total", "sum", "rain", "snow", "co2", "fuel"),
}
"""A variable with one of these words in its name adds up when finer readings become a coarser one. Every other (speed,
occupancy, temperature, noise, …) is averaged."""


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

    site: NDArray[np.int64]
    time: NDArray[np.int64]
    values: NDArray[np.float64]
    unordered: int = 0
    repeated: int = 0
    rescaled: int = 0


@dataclass(frozen=True, eq=False)
class Intervals:
    """How far apart readings are, in seconds: the lower median, which gaps and clock changes leave alone; 0 if unknown.

    Args:
        each: S, of every site.
        usual: Over all sites.
    """

    each: NDArray[np.int64]
    usual: int


def tidy(readings: Readings) -> Tidy:
    """Put readings in order; those of the same site and time become their mean."""
    order = np.lexsort((readings.time, readings.site))
    site, time, values = readings.site[order], readings.time[order], readings.values[order]
    first = _changes(site, time)
    sums, counts = _totals(values, first)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return Tidy(site[first], time[first], means, _unordered(readings), len(site) - len(first))


def intervals(rows: Tidy, sites: int) -> Intervals:
    """How far apart the readings of `sites` sites are."""
    same = np.diff(rows.site) == 0
    site, apart = rows.site[1:][same], np.diff(rows.time)[same]
    by_site = apart[np.lexsort((apart, site))]
    counts = np.bincount(site, minlength=sites)
    middle = np.cumsum(counts) - counts + (counts - 1) // 2
    each = np.zeros(sites, np.int64)
    each[counts > 0] = by_site[middle[counts > 0]]
    return Intervals(each, int(np.sort(apart)[(len(apart) - 1) // 2]) if len(apart) else 0)


def coarser(rows: Tidy, each: NDArray[np.int64], step: int, summed: NDArray[np.bool_]) -> Tidy:
    """Readings of whole steps, whose times are numbers of steps since 1970.

    A step with less than half of its finer readings is missing; one with more, but not all, counts as if the others were
    like them. Where there are more than twice as many as usual they are finer still, and add up as they are.

    Args:
        rows: Of any spacing.
        each: S, seconds between the readings of each site, or 0.
        step: In seconds.
        summed: D, whether a variable adds up; the others are averaged.
    """
    number = rows.time // step
    first = _changes(rows.site, number)
    sums, counts = _totals(rows.values, first)

    spacing = np.where(each > 0, each, step)[rows.site[first], None]
    whole = np.maximum(step / spacing, 1)
    means = np.where(2 * counts >= whole, sums / np.maximum(counts, 1), np.nan)
    added = np.where((counts == whole) | (counts > 2 * whole), sums, means * whole)
    values = np.where(summed, added, means)

    part = (2 * counts >= whole) & (counts + 1 <= whole)
    kept = replace(rows, site=rows.site[first], time=number[first], values=values)
    return replace(kept, rescaled=int(part.any(axis=1).sum()))


def adds_up(variables: tuple[str, ...]) -> NDArray[np.bool_]:
    """D, which variables `SUMMED` names."""
    words = [name.lower().replace("-", "_").replace(" ", "_").split("_") for name in variables]
    return np.array([not SUMMED.isdisjoint(parts) for parts in words])


def _changes(site: NDArray[np.int64], time: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where site or time differ from the row before, the first row included."""
    new = (np.diff(site, prepend=-1) != 0) | (np.diff(time, prepend=time[:1]) != 0)
    return np.flatnonzero(new)


def _totals(values: NDArray[np.float64], first: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sum and number of what is there in each group of rows, groups × D."""
    known = ~np.isnan(values)
    sums = np.add.reduceat(np.where(known, values, 0), first, axis=0)
    return sums, np.add.reduceat(known, first, axis=0, dtype=np.int64)


def _unordered(readings: Readings) -> int:
    order = np.argsort(readings.site, kind="stable")
    return int(((np.diff(readings.site[order]) == 0) & (np.diff(readings.time[order]) < 0)).sum())
