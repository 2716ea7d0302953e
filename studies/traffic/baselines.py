"""Baselines without a network: the last reading, and ridge regression on federated statistics."""

from collections.abc import Sequence

import numpy as np

from client.tasks.traffic.metrics import correct, excess
from client.tasks.traffic.sensor import Sensor
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.properties import satisfaction

RIDGE = 10.0
"""Added to the diagonal of the summed Gram matrix."""


def last_reading(sensors: Sequence[Sensor], options: TrafficOptions) -> float:
    """Return the MSE of repeating the last reading of the history, mean over sensors."""
    errors = []
    for sensor in sensors:
        _, places = sensor.targets(sensor.test, options.horizon)
        errors.append(sensor.error(np.repeat(sensor.values[sensor.test - 1][:, None], options.horizon, axis=1), places))
    return float(np.nanmean(errors))


def ridge_row(sensors: Sequence[Sensor], options: TrafficOptions) -> dict[str, float]:
    """Return metrics of profile + federated ridge, mean over sensors.

    The ridge is fitted on Gram matrices summed over all clients (one upload).
    """
    rows = [_rows(sensor, sensor.train, options) for sensor in sensors]
    gram, moment = np.sum([x.T @ x for x, _ in rows], axis=0), np.sum([x.T @ y for x, y in rows], axis=0)
    weights = np.linalg.solve(gram + RIDGE * np.eye(len(gram)), moment)
    measured = [_metrics_of(sensor, weights, options) for sensor in sensors if len(sensor.test)]
    return {name: float(np.mean([row[name] for row in measured])) for name in measured[0]}


def _rows(sensor: Sensor, first: np.ndarray, options: TrafficOptions) -> tuple[np.ndarray, np.ndarray]:
    """Return departures from the profile: histories with a constant, N × (H·D + 1), and targets, N × P·D."""
    departure = sensor.values - sensor.profile
    past, future = first[:, None] + np.arange(-options.history, 0), first[:, None] + np.arange(options.horizon)
    x = departure[past].reshape(len(first), -1)
    return np.hstack([x, np.ones((len(x), 1))]), departure[future].reshape(len(first), -1)


def _metrics_of(sensor: Sensor, weights: np.ndarray, options: TrafficOptions) -> dict[str, float]:
    x, _ = _rows(sensor, sensor.test, options)
    _, places = sensor.targets(sensor.test, options.horizon)
    forecast = (x @ weights).reshape(*places.shape, -1) + sensor.profile[places]
    corrected, satisfied = correct(sensor, forecast, sensor.test), satisfaction(excess(sensor, forecast, sensor.test))
    return {"mse": sensor.error(forecast, places), "teacher_mse": sensor.error(corrected, places), **satisfied}
