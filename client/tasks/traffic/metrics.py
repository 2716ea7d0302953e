"""Metrics of a sensor's forecasts and baselines: errors, and satisfaction of its property."""

from collections.abc import Callable

import numpy as np

from client.tasks.traffic.sensor import Sensor
from common.arrays import Flags, Floats, Ints
from common.tasks.traffic.properties import satisfaction
from common.wire.messages import Metrics


def forecast_error(sensor: Sensor, split: str, horizon: int, forecast: Callable[[Ints], Floats]) -> float:
    """Return the MSE of forecasts, a function of the first targets."""
    first = sensor.starts(split)
    if not len(first):
        return float("nan")
    _, places = sensor.targets(first, horizon)
    return sensor.error(forecast(first), places)


def ridge_error(sensor: Sensor, split: str, horizon: int) -> float:
    """Return the MSE of the profile plus the ridge forecast; NaN without a ridge regression."""
    if not sensor.ridge.size:
        return float("nan")
    _, places = sensor.targets(sensor.starts(split), horizon)
    return forecast_error(sensor, split, horizon, lambda first: sensor.profile[places] + sensor.ridge[first])


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
