"""Split of a sensor's series into training and held-out parts, in order of time, and their windows."""

import math
from dataclasses import dataclass

import numpy as np

from client.data.partition import floor_share
from client.tasks.traffic.data.series import Series
from common.arrays import Flags, Floats, Ints
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.vocabulary import DAY, HOUR


@dataclass(frozen=True, eq=False)
class Scaler:
    """Standardises variables.

    Args:
        mean: D, in the data's units.
        std: D, positive.
    """

    mean: Floats
    std: Floats

    def scale(self, values: Floats) -> Floats:
        """Convert the data's units to standard deviations from the mean, … × D."""
        return (values - self.mean) / self.std

    def unscale(self, values: Floats) -> Floats:
        """Invert `scale`, … × D."""
        return values * self.std + self.mean


@dataclass(frozen=True, eq=False)
class SplitSeries:
    """A series in three parts, [0, `train_end`), [`train_end`, `validation_end`) and the rest.

    Args:
        scaler: Fitted on the readings of the training part.
        train: Windows whose targets all lie in the training part; their history may not reach before the series, nor end
            in a gap.
        validation: The same of the second part; history may reach back into training.
        test: The same of the last part.
        train_end: Step at which training ends.
        validation_end: Step at which testing begins.
    """

    scaler: Scaler
    train: Ints
    validation: Ints
    test: Ints
    train_end: int
    validation_end: int


def split_series(series: Series, options: TrafficOptions, step: int = HOUR) -> SplitSeries:
    """Split a series by the shares: test last, validation before it; short series hold nothing out.

    Parts begin at the midnight nearest to the exact share (the earlier of two), unless that would leave one of them empty.

    Args:
        series: T readings.
        options: Shares, history and horizon; a window is `history` steps in and `horizon` steps out.
        step: Seconds between readings.
    """
    train_end, validation_end = _ends(series, options, step)
    length = len(series.values)
    scaler = _fitted(series, train_end)
    bounds = ((0, train_end), (train_end, validation_end), (validation_end, length))
    train, validation, test = (_starts(*part, options, series.observed) for part in bounds)
    return SplitSeries(scaler, train, validation, test, train_end, validation_end)


def _ends(series: Series, options: TrafficOptions, step: int) -> tuple[int, int]:
    """Return the ends of training and validation: at midnights, or by shares rounded down."""
    length = len(series.values)
    held = (options.validation_share, options.test_share)
    offset = int(series.start.astype("datetime64[s]").astype(np.int64)) % DAY // step
    train, validation = (_midnight(length * (1 - share), offset, DAY // step) for share in (sum(held), held[1]))
    if 0 < train <= validation < length and (train < validation or not held[0]):
        return train, validation
    test = min(floor_share(held[1], length), length - 1)
    return length - test - min(floor_share(held[0], length), length - test - 1), length - test


def _midnight(exact: float, offset: int, day: int) -> int:
    """Return the step nearest to `exact` at which a day begins; the first step is at `offset` of its day."""
    return math.ceil((exact + offset) / day - 0.5 - 1e-9) * day - offset


def _fitted(series: Series, end: int) -> Scaler:
    """Return mean and deviation of the observed training readings; of all readings if none is observed."""
    values, observed = series.values[:end], series.observed[:end]
    used = np.where(observed | ~observed.any(axis=0), values, np.nan)
    mean, std = np.nanmean(used, axis=0), np.nanstd(used, axis=0)
    constant = std <= 1e-9 * np.abs(mean)
    return Scaler(mean, np.where(constant, 1.0, std))


def _starts(begin: int, end: int, options: TrafficOptions, observed: Flags) -> Ints:
    """Return windows with targets in [begin, end) whose history ends with a reading."""
    first = np.arange(max(begin, options.history), end - options.horizon + 1, dtype=np.int64)
    return first[observed[first - 1].all(axis=1)]
