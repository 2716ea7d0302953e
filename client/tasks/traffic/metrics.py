"""Metrics of a sensor's forecasts and baselines: errors, satisfaction, coverage of 80 % intervals.

Intervals come from the sensor's own past errors at each step of the horizon.
"""

from collections.abc import Callable

import numpy as np

from client.tasks.traffic.sensor import Sensor
from common.arrays import Flags, Floats, Ints
from common.tasks.traffic.properties import satisfaction
from common.tasks.traffic.vocabulary import DAY
from common.wire.messages import Metrics


def forecast_errors(sensor: Sensor, split: str, forecast: Floats) -> Floats:
    """Return the MSE of a split's forecasts, N × P × D, in blocks of windows; their mean is that of all.

    A block has as many windows as a forecast has steps, since windows that share targets have similar errors.
    """
    first, horizon = sensor.starts(split), forecast.shape[1]
    truth, places = sensor.targets(first, horizon)
    seen, begins = sensor.observed[places], np.arange(0, len(first), horizon)
    if not seen.any():
        return np.zeros(0)
    squares = np.where(seen, (forecast - truth) ** 2, 0.0).sum(axis=(1, 2))
    return np.asarray(np.add.reduceat(squares, begins) * len(begins) / seen.sum())


def judged(sensor: Sensor, first: Ints) -> Flags:
    """Return True for each forecast that the sensor's property judges, by its first target, N."""
    return sensor.stated.judged(sensor.slots[first]) if sensor.stated else np.ones(first.shape, bool)


def correct(sensor: Sensor, forecasts: Floats, first: Ints) -> Floats:
    """Return the teacher's forecasts, N × P × D; unchanged where they are not judged.

    They are the closest satisfying ones. Under ranges that hold with a probability p, a forecast goes the share p of the way.
    """
    if not sensor.stated:
        clock = sensor.clock[first[:, None] + np.arange(forecasts.shape[1])]
        projected = sensor.ranges.project(forecasts, clock, sensor.margins(first))
        return projected + (1 - sensor.calibrated.weight) * (forecasts - projected)
    corrected, counts = forecasts.astype(np.float64), judged(sensor, first)
    if counts.any():
        corrected[counts] = sensor.stated.correct(forecasts[counts])
    return corrected


def excess(sensor: Sensor, forecasts: Floats, first: Ints) -> Floats:
    """Return the distance of each judged forecast to the closest satisfying one, at most N × P × D."""
    if not sensor.stated:
        clock = sensor.clock[first[:, None] + np.arange(forecasts.shape[1])]
        return sensor.ranges.excess(forecasts, clock, sensor.margins(first))
    counts = judged(sensor, first)
    return np.abs(correct(sensor, forecasts[counts], first[counts]) - forecasts[counts])


def limits(sensor: Sensor, forecast: Floats, first: int) -> tuple[Floats, Floats]:
    """Return lower and upper bounds of each reading of one forecast, P × D; NaN under a formula."""
    if sensor.stated:
        nothing = np.full_like(forecast, np.nan)
        return nothing, nothing
    clock, margins = sensor.clock[first : first + len(forecast)], sensor.margins(np.array([first]))[0]
    return sensor.ranges.reading_limits(forecast, clock, margins)


def forecast_metrics(sensor: Sensor, forecast: Floats, first: Ints, weight: float) -> Metrics:
    """Return errors and satisfaction before and after the teacher, in standard deviations.

    Args:
        sensor: The sensor.
        forecast: Forecasts of N windows, N × P × D.
        first: First targets of the windows, N; at least one.
        weight: Weight λ of the violation in the loss.
    """
    places = first[:, None] + np.arange(forecast.shape[1])
    corrected, violated = correct(sensor, forecast, first), excess(sensor, forecast, first)
    error = sensor.error(forecast, places)
    return {
        "loss": error + weight * (float(violated.mean()) if len(violated) else 0.0),
        "mse": error,
        **satisfied_shares(violated),
        "teacher_mse": sensor.error(corrected, places),
        **{f"teacher_{name}": share for name, share in satisfied_shares(excess(sensor, corrected, first)).items()},
    }


def baseline_metrics(sensor: Sensor, split: str, horizon: int) -> Metrics:
    """Return errors of baselines, satisfaction by fully observed windows, and the property's width.

    `windows` is the number of the split's windows. Without windows there are no metrics.
    """
    first = sensor.starts(split)
    if not len(first):
        return {}
    truth, places = sensor.targets(first, horizon)
    whole = sensor.observed[places].all(axis=(1, 2))
    shares = satisfied_shares(excess(sensor, truth[whole], first[whole]))
    row = {f"truth_{name}": share for name, share in shares.items()}
    weekly_profile = sensor.profile[places]
    row["profile_mse"] = sensor.error(weekly_profile, places)
    if sensor.ridge.size:
        row["ridge_mse"] = sensor.error(weekly_profile + sensor.ridge[first], places)
    width = float("nan") if sensor.stated else sensor.ranges.width
    return row | {
        "last_week_mse": sensor.last_week_error(places),
        "property_width": width,
        "windows": float(len(first)),
    }


def satisfied_shares(distances: Floats) -> Metrics:
    """Return the shares of `satisfaction`; none without judged forecasts."""
    return satisfaction(distances) if len(distances) else {}


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
    """Return the lower and upper bound of the next error at each step, P × D; NaN with too few errors.

    They are ranks among n errors and the next one, (n + 1)·q of n (conformal prediction).
    """
    counts = np.isfinite(errors).sum(axis=0)
    enough = counts >= MIN_ERRORS
    if not enough.any():
        nothing = np.full(errors.shape[1:], np.nan)
        return nothing, nothing
    upper = TAILS[1] * (counts.max() + 1) / counts.max()
    ordered, last = np.sort(errors, axis=0), np.maximum(counts - 1, 0)  # NaN come last
    low, high = (_quantile(ordered, share * last) for share in (1 - upper, upper))
    return np.where(enough, low, np.nan), np.where(enough, high, np.nan)


def _quantile(ordered: Floats, rank: Floats) -> Floats:
    """Return the value at a rank among the ordered ones of each step, rounded as by NumPy."""
    below = np.floor(rank).astype(np.int64)
    low, high = (np.take_along_axis(ordered, k[None], axis=0)[0] for k in (below, np.ceil(rank).astype(np.int64)))
    share = rank - below
    return np.asarray(np.where(share < 0.5, low + (high - low) * share, high - (high - low) * (1 - share)))


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


def evaluated(sensor: Sensor, split: str) -> Ints:
    """Return the first targets that `split_coverage` needs: earlier ones, then those of the split.

    Errors of the test split come after those of the validation split.
    """
    first, before = sensor.starts(split), sensor.validation if split == "test" else sensor.validation[:0]
    return np.concatenate([earlier_windows(sensor, before, int(first[0])), first])


def split_coverage(sensor: Sensor, split: str, made: Floats) -> float:
    """Return the share of a split's readings inside intervals by earlier errors.

    Args:
        sensor: The sensor.
        split: `validation` or `test`; it has windows.
        made: Forecasts of the windows `evaluated`, N × P × D.
    """
    first = evaluated(sensor, split)
    tested = np.arange(len(first)) >= len(first) - len(sensor.starts(split))
    return coverage(sensor, errors_of(sensor, made, first), first, tested)
