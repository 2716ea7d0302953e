"""80 % intervals of forecasts from the sensor's own past errors at each step of the horizon."""

from collections.abc import Callable

import numpy as np

from client.tasks.traffic.sensor import Sensor
from common.arrays import Flags, Floats, Ints
from common.tasks.traffic.vocabulary import DAY

TAILS = (0.1, 0.9)
"""Quantiles of the errors that bound the interval."""

MIN_ERRORS = 20
"""Smallest number of past errors at a step from which an interval is computed."""

MEMORY_DAYS = 28
"""Age of the oldest errors that are used, in days."""

MAX_EARLIER = 128
"""Largest number of earlier windows, evenly spaced, that are forecast for their errors alone."""


MAX_NEXT = 1024
"""The same for the interval of one forecast."""


def earlier_windows(sensor: Sensor, first: Ints, end: int, most: int = MAX_EARLIER) -> Ints:
    """Return at most `most` of the windows in the last `MEMORY_DAYS` days before the reading `end`."""
    recent = first[first >= end - MEMORY_DAYS * DAY // sensor.step]
    return recent[:: max(1, -(-len(recent) // most))]


def errors_of(sensor: Sensor, forecasts: Floats, first: Ints) -> Floats:
    """Return reading minus forecast of windows, N × P × D; NaN in gaps."""
    truth, places = sensor.targets(first, forecasts.shape[1])
    return np.where(sensor.observed[places], truth - forecasts, np.nan)


def bounds(errors: Floats) -> tuple[Floats, Floats]:
    """Return the lower and upper bound of the next error at each step, P × D; NaN with too few errors."""
    enough = np.isfinite(errors).sum(axis=0) >= MIN_ERRORS
    if not enough.any():
        nothing = np.full(errors.shape[1:], np.nan)
        return nothing, nothing
    low, high = np.nanquantile(np.where(enough, errors, 0.0), TAILS, axis=0)
    return np.where(enough, low, np.nan), np.where(enough, high, np.nan)


def next_bounds(forecasts: Callable[[Ints], Floats], sensor: Sensor) -> tuple[Floats, Floats]:
    """Return the bounds of the next error, P × D, from held-out windows; NaN with too few.

    Args:
        forecasts: Function from first targets of N windows to their forecasts, N × P × D.
        sensor: The sensor, fitted to its training part.
    """
    held = np.concatenate([sensor.validation, sensor.test])
    first = earlier_windows(sensor, held, len(sensor.values), MAX_NEXT)
    return bounds(errors_of(sensor, forecasts(first), first))


def coverage(sensor: Sensor, errors: Floats, first: Ints, tested: Flags) -> float:
    """Return the share of tested readings inside their intervals; NaN without any.

    An interval uses the errors of windows that ended before its own began. It is renewed every P windows.

    Args:
        sensor: The sensor.
        errors: Errors of N windows, N × P × D.
        first: First targets of the windows, ascending, N.
        tested: True for windows that count, N.
    """
    horizon, memory = errors.shape[1], MEMORY_DAYS * DAY // sensor.step
    inside, number = 0, 0
    places = np.flatnonzero(tested)
    for block in np.split(places, range(horizon, len(places), horizon)) if len(places) else ():
        begin = first[block[0]]
        low, high = bounds(errors[(first <= begin - horizon) & (first >= begin - memory)])
        counts = np.isfinite(errors[block]) & np.isfinite(low)
        inside += int(((errors[block] >= low) & (errors[block] <= high) & counts).sum())
        number += int(counts.sum())
    return inside / number if number else float("nan")


def split_coverage(forecasts: Callable[[Ints], Floats], sensor: Sensor, split: str, made: Floats) -> float:
    """Return the share of a split's readings inside intervals by earlier errors.

    Errors of the test split come after those of the validation split.

    Args:
        forecasts: Function from first targets of N windows to their forecasts, N × P × D.
        sensor: The sensor.
        split: `validation` or `test`; it has windows.
        made: Forecasts of the windows of the split.
    """
    first = sensor.starts(split)
    before = sensor.validation if split == "test" else sensor.validation[:0]
    earlier = earlier_windows(sensor, before, int(first[0]))
    errors = np.concatenate([errors_of(sensor, forecasts(earlier), earlier), errors_of(sensor, made, first)])
    tested = np.arange(len(errors)) >= len(earlier)
    return coverage(sensor, errors, np.concatenate([earlier, first]), tested)
