"""Adaptive conformal ranges: bounds by the hour that hold on whole windows as often as stated.

A window's score is its largest distance to the middle of the ranges, in spreads of its hour. A window satisfies the ranges if its
score is at most the threshold, and a threshold is a rank among scores of earlier windows (split conformal prediction, Vovk et al.
2005; one score a window: Lindemann et al. 2023). The level of that rank follows the violations (Gibbs and Candès 2021).
"""

from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np

from common.arrays import Flags, Floats, Ints
from common.tasks.traffic.properties import Ranges

RATE = 0.05
"""Change γ of the level by a violation (Gibbs and Candès 2021, Eq 2)."""

ENFORCED = 0.1
"""Share of the violations that the enforced bounds leave."""

SHRINKAGE = 10.0
"""Number of readings by which an hour's spread is shrunk to the mean spread."""

SMALLEST = 0.5
"""Term in every spread, as a share of the mean spread."""

TINY = 1e-9
"""Smallest spread, and rounding error of a rank."""


@dataclass(frozen=True)
class Calibrated:
    """Property of a sensor's past with its levels.

    Args:
        ranges: Ranges at the end of the past.
        margins: Change of the bounds since the end of the past, in spreads, for windows that begin at each reading, T.
        slack: Distance of the enforced bounds to the ranges, in spreads.
        held: Share of past windows that satisfy the ranges, each tested without itself; NaN if not tested.
        seen: Share of observed readings of the tested windows, 1 if all are complete; NaN if not tested.
        windows: Number of tested windows.
    """

    ranges: Ranges
    margins: Floats
    slack: float = 0.0
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
class Readings:
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


def calibrate(readings: Readings, groups: Ints, coverage: float, *, one_sided: bool = False) -> Calibrated:
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
    scores = _scores(-distances if one_sided else np.abs(distances), readings, np.concatenate([windows, later]))
    thresholds = adapt(scores, coverage)
    tested, end = np.sort(scores[: len(windows)]), thresholds[len(windows)]
    margins = np.zeros(len(readings.values))
    ends = np.searchsorted(readings.window, later, side="right")
    for first, bound in zip(ends, thresholds[len(windows) + 1 :], strict=True):
        margins[first:] = bound - end
    return Calibrated(
        Ranges(middle - end * spread, middle + end * spread, spread=spread),
        margins,
        max(0.0, _enforced(tested, coverage) - end),
        float(np.mean(tested <= end)),
        float(numbers.mean() / readings.length),
        len(windows),
    )


def _enforced(scores: Floats, coverage: float) -> float:
    """Return the threshold of the enforced bounds: at most the largest score if it guarantees the coverage."""
    level = 1 - ENFORCED * (1 - coverage)
    if len(scores) < fewest_windows(coverage):
        return threshold(scores.tolist(), coverage)
    return threshold(scores.tolist(), min(level, len(scores) / (len(scores) + 1)))


def _fit(readings: Readings, usable: Flags, groups: Ints) -> tuple[Floats, Floats, Floats]:
    """Return middle and spread of the ranges, W × D, and the distance of each reading in spreads, T × D.

    Middle and spread are means of values and of absolute distances over the usable readings of a group. The distances of a
    past window use the means of the other windows and of a new one at the middle, as in full conformal prediction.
    """
    values = _Means(readings, usable, groups, readings.values)
    departures = readings.values - values.by_reading()
    distances = _Means(readings, usable, groups, np.abs(departures), SHRINKAGE, SMALLEST)
    return values.by_row(), np.maximum(distances.by_row(), TINY), departures / np.maximum(distances.by_reading(), TINY)


class _Means:
    """Means of the usable readings of each group, shrunk to the mean of all.

    Args:
        readings: Readings in windows.
        usable: True for the readings that count, T.
        groups: Index of the group of each row of the week, W.
        values: Values that are averaged, T × D.
        shrinkage: Number of readings at the mean of all that each group has in addition.
        share: Share of the mean of all that is added.
    """

    def __init__(
        self, readings: Readings, usable: Flags, groups: Ints, values: Floats, shrinkage: float = 0, share: float = 0
    ) -> None:
        self._groups, self._group, self._usable = groups, groups[readings.rows], usable
        self._window = readings.window - readings.window[0]
        shape, at = (int(self._window[-1]) + 1, int(groups.max()) + 1), (self._window[usable], self._group[usable])
        self._sums, self._counts = np.zeros((*shape, values.shape[1])), np.zeros((*shape, 1))
        np.add.at(self._sums, at, values[usable])
        np.add.at(self._counts, at, 1)
        self._overall, self._shrinkage, self._share = values[usable].mean(axis=0), shrinkage, share

    def by_row(self) -> Floats:
        """Return the mean of each row of the week, W × D."""
        return np.asarray((self._means + self._share * self._overall)[self._groups])

    def by_reading(self) -> Floats:
        """Return the mean for each reading, T × D; for a usable one, its window is replaced by the means."""
        apart = self._means + (self._counts * self._means - self._sums) / np.maximum(self._weights, 1)
        means = np.where(self._usable[:, None], apart[self._window, self._group], self._means[self._group])
        return np.asarray(means + self._share * self._overall)

    @cached_property
    def _weights(self) -> Floats:
        return np.asarray(self._counts.sum(axis=0) + self._shrinkage)

    @cached_property
    def _means(self) -> Floats:
        sums = self._sums.sum(axis=0) + self._shrinkage * self._overall
        return np.where(self._weights > 0, sums / np.maximum(self._weights, 1), self._overall)


def _scores(distances: Floats, readings: Readings, windows: Ints) -> Floats:
    """Return the largest distance of the observed readings of each window, N."""
    worst, seen = np.full(int(readings.window[-1] - readings.window[0]) + 1, -np.inf), readings.observed
    np.maximum.at(worst, readings.window[seen] - readings.window[0], distances[seen].max(axis=1))
    return worst[windows - readings.window[0]]
