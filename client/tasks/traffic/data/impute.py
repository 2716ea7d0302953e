"""Gaps of a series on a regular grid, filled."""

from typing import NamedTuple

import numpy as np

from common.arrays import Flags, Floats
from common.tasks.traffic.vocabulary import DAY

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
