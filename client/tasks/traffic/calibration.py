"""Adaptive conformal ranges: bounds by the hour that hold on whole windows as often as stated.

The score of a window is its largest distance to the middle of the ranges, in spreads of the hour. A window satisfies the
ranges if its score is at most the threshold, a rank among the scores of earlier windows (conformal prediction, Vovk et al.
2005, with one score for all steps as in Lindemann et al. 2023). The level of the rank follows the violations (Gibbs and
Candès 2021).
"""

from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from common.arrays import Flags, Floats, Ints
from common.tasks.traffic.properties import Ranges

RATE = 0.05
"""Change γ of the level by a violation (Gibbs and Candès 2021, Eq 2)."""

SHRINKAGE = 5.0
"""Number of readings by which an hour's spread is shrunk to the mean spread."""

SMALLEST = 0.2
"""Term in every spread, as a share of the mean spread."""

TINY = 1e-9
"""Smallest spread, and rounding error of a rank."""


@dataclass(frozen=True)
class Calibrated:
    """Property of a sensor's past, with its margins after it.

    Args:
        ranges: Ranges at the end of the past.
        margins: Change of the bounds since the end of the past, in spreads, for windows that begin at each reading, T.
        weight: Share of the way to the closest satisfying forecast that the teacher goes.
        held: Share of past windows that satisfy the ranges, each tested without itself; NaN if not tested.
        seen: Share of observed readings of the tested windows, 1 if all are complete; NaN if not tested.
        windows: Number of tested windows.
    """

    ranges: Ranges
    margins: Floats
    weight: float = 1.0
    held: float = float("nan")
    seen: float = float("nan")
    windows: int = 0


def fewest_windows(coverage: float) -> int:
    """Return the smallest number of windows whose largest score guarantees the coverage; 9 for 0.9."""
    return ceil(coverage / (1 - coverage) - TINY)


def threshold(scores: Sequence[float], level: float) -> float:
    """Return the score of rank level·(n + 1) among n scores, ascending, interpolated between two ranks.

    With too few scores the largest one is extrapolated in proportion to the rank.
    """
    rank, count = max(level * (len(scores) + 1), 1.0), len(scores)
    if rank >= count:
        return scores[-1] * max(rank / count, 1.0)
    whole = int(rank)
    return scores[whole - 1] + (rank - whole) * (scores[whole] - scores[whole - 1])


def adapt(scores: Iterable[float], coverage: float) -> Floats:
    """Return the threshold before each window and after the last, N + 1.

    The level rises by γ·`coverage` after a violation and falls by γ·(1 − `coverage`) after any other window. The share of
    violations over many windows tends to 1 − `coverage` for any sequence of scores. Before the first score it is infinite.
    """
    level, earlier, found = coverage, list[float](), []
    for score in scores:
        bound = threshold(earlier, level) if earlier else np.inf
        found.append(bound)
        if len(earlier) >= fewest_windows(coverage):
            level += RATE * ((score > bound) - (1 - coverage))
        insort(earlier, score)
    return np.array([*found, threshold(earlier, level) if earlier else np.inf])


@dataclass(frozen=True)
class WindowedReadings:
    """Readings of a sensor in windows that do not overlap.

    Args:
        values: Readings, T × D.
        rows: Row of the week of each reading, T.
        observed: True for readings of all variables, T.
        past: Number of readings from which the ranges are inferred.
        window: Number of the window of each reading, ascending, T.
        length: Number P of readings of a complete window.
    """

    values: Floats
    rows: Ints
    observed: Flags
    past: int
    window: Ints
    length: int


def calibrate(readings: WindowedReadings, groups: Ints, coverage: float, *, one_sided: bool = False) -> Calibrated:
    """Infer ranges that a window satisfies with probability `coverage`; the past has an observed reading.

    Complete windows are tested if they suffice for the coverage, else all.

    Args:
        readings: Readings of the past and, for the adaptive margins, later ones.
        groups: Index of the range of each row of the week, W.
        coverage: Share of windows whose readings all satisfy the ranges.
        one_sided: True if the lower bounds alone will be used.
    """
    usable = readings.observed & (np.arange(len(readings.values)) < readings.past)
    middle, spread, distances = _fit(readings, usable, groups)
    windows, numbers = np.unique(readings.window[usable], return_counts=True)
    is_complete = numbers == readings.length
    if is_complete.sum() >= fewest_windows(coverage):
        windows, numbers = windows[is_complete], numbers[is_complete]
    later, count = np.unique(readings.window[readings.past :][readings.observed[readings.past :]], return_counts=True)
    later = later[count == readings.length]
    distances = -distances if one_sided else np.abs(distances)
    scores = _scores(distances, readings.window, usable, windows)
    thresholds = adapt([*scores, *_scores(distances, readings.window, readings.observed, later)], coverage)
    end, margins = thresholds[len(windows)], np.zeros(len(readings.values))
    ends = np.searchsorted(readings.window, later, side="right")
    for first, bound in zip(ends, thresholds[len(windows) + 1 :], strict=True):
        margins[first:] = bound - end
    ranges = Ranges(middle - end * spread, middle + end * spread, spread=spread)
    held, seen = float(np.mean(scores <= end)), float(numbers.mean() / readings.length)
    return Calibrated(ranges, margins, coverage, held, seen, len(windows))


def _fit(readings: WindowedReadings, usable: Flags, groups: Ints) -> tuple[Floats, Floats, Floats]:
    """Return middle and spread of the ranges, W × D, and the distance of each reading in spreads, T × D.

    Middle and spread are means of values and of absolute departures over the usable readings of a group. A past reading has
    those of the other windows. A middle of n windows lets independent departures vary √(1 + 1/n) times as much.
    """
    overall = readings.values[usable].mean(axis=0)
    values = _Means(readings, usable, groups, readings.values, overall)
    departures = (readings.values - values.by_reading()) / values.errors_by_reading()
    widest = np.abs(readings.values[usable] - overall).mean(axis=0)
    spreads = _Means(readings, usable, groups, np.abs(departures), widest, shrinkage=SHRINKAGE, share=SMALLEST)
    spread = np.maximum(spreads.by_row() * values.errors_by_row(), TINY)
    return values.by_row(), spread, departures / np.maximum(spreads.by_reading(), TINY)


class _Means:
    """Means of the usable readings of each group, shrunk to the mean of all, with and without a window.

    Args:
        readings: Readings in windows.
        usable: True for the readings that count, T.
        groups: Index of the group of each row of the week, W.
        values: Values that are averaged, T × D.
        empty: Mean of a group without readings, D.
        shrinkage: Number of readings at the mean of all that each group has in addition.
        share: Share of the mean of all that is added.
    """

    def __init__(
        self,
        readings: WindowedReadings,
        usable: Flags,
        groups: Ints,
        values: Floats,
        empty: Floats,
        *,
        shrinkage: float = 0.0,
        share: float = 0.0,
    ) -> None:
        self._groups, self._group, self._usable = groups, groups[readings.rows], usable
        self._window = readings.window - readings.window[0]
        shape, at = (int(self._window[-1]) + 1, int(groups.max()) + 1), (self._window[usable], self._group[usable])
        sums, counts = np.zeros((*shape, values.shape[1])), np.zeros((*shape, 1))
        np.add.at(sums, at, values[usable])
        np.add.at(counts, at, 1)
        self._empty, self._shrinkage, self._share = empty, shrinkage, share
        self._windows = (counts > 0).sum(axis=0)
        self._whole = self._means(sums.sum(axis=0), counts.sum(axis=0))
        self._apart = self._means(sums.sum(axis=0) - sums, counts.sum(axis=0) - counts)

    def by_row(self) -> Floats:
        """Return the mean of each row of the week, W × D."""
        return self._whole[self._groups]

    def by_reading(self) -> Floats:
        """Return the mean for each reading, T × D; for a usable one, without its window."""
        apart = self._apart[self._window, self._group]
        return np.asarray(np.where(self._usable[:, None], apart, self._whole[self._group]))

    def errors_by_row(self) -> Floats:
        """Return √(1 + 1/n) of each row of the week, W × 1."""
        return np.asarray(np.sqrt(1 + 1 / np.maximum(self._windows, 1)))[self._groups]

    def errors_by_reading(self) -> Floats:
        """Return √(1 + 1/n) for each reading, T × 1; n of a usable one is without its window."""
        windows = self._windows[self._group] - self._usable[:, None]
        return np.asarray(np.sqrt(1 + 1 / np.maximum(windows, 1)))

    def _means(self, sums: Floats, counts: Floats) -> Floats:
        """Return the shrunk means of groups, … × G × D."""
        overall = sums.sum(axis=-2, keepdims=True) / np.maximum(counts.sum(axis=-2, keepdims=True), 1)
        means = (sums + self._shrinkage * overall) / np.maximum(counts + self._shrinkage, 1)
        return np.asarray(np.where(counts > 0, means, self._empty) + self._share * overall)


def _scores(distances: Floats, window: Ints, tested: Flags, windows: Ints) -> Floats:
    """Return the largest distance of the tested readings of each of some windows, N."""
    worst = np.full(int(window[-1] - window[0]) + 1, -np.inf)
    np.maximum.at(worst, window[tested] - window[0], distances[tested].max(axis=1))
    return np.asarray(worst[windows - window[0]], np.float64)
