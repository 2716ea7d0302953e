"""Judgement and correction of a sensor's forecasts: by its formula, or by its ranges on the clock."""

import numpy as np

from client.tasks.traffic.prepare import Sensor
from common.arrays import Flags, Floats, Ints


def judged(sensor: Sensor, first: Ints) -> Flags:
    """Return True for each forecast that the sensor's property judges, by its first target, N."""
    return sensor.stated.judged(sensor.slots[first]) if sensor.stated else np.ones(first.shape, bool)


def correct(sensor: Sensor, forecasts: Floats, first: Ints) -> Floats:
    """Return the closest satisfying forecasts, N × P × D; unchanged where they are not judged."""
    if not sensor.stated:
        return sensor.ranges.project(forecasts, sensor.clock[first[:, None] + np.arange(forecasts.shape[1])])
    corrected, counts = forecasts.astype(np.float64), judged(sensor, first)
    if counts.any():
        corrected[counts] = sensor.stated.correct(forecasts[counts])
    return corrected


def excess(sensor: Sensor, forecasts: Floats, first: Ints) -> Floats:
    """Return the distance of each judged forecast to the closest satisfying one, at most N × P × D."""
    if not sensor.stated:
        return sensor.ranges.excess(forecasts, sensor.clock[first[:, None] + np.arange(forecasts.shape[1])])
    counts = judged(sensor, first)
    return np.abs(correct(sensor, forecasts[counts], first[counts]) - forecasts[counts])


def limits(sensor: Sensor, forecast: Floats, first: int) -> tuple[Floats, Floats]:
    """Return lower and upper bounds of each reading of one forecast, P × D; NaN under a formula."""
    if sensor.stated:
        nothing = np.full_like(forecast, np.nan)
        return nothing, nothing
    return sensor.ranges.limits(forecast, sensor.clock[first : first + len(forecast)])
