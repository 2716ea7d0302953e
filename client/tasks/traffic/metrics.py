"""Metrics of one sensor's forecasts and baselines on held-out windows."""

import numpy as np

from client.tasks.traffic.judgement import correct, excess
from client.tasks.traffic.prepare import Sensor
from common.arrays import Floats, Ints
from common.tasks.traffic.ranges import satisfaction
from common.wire.messages import Metrics


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
