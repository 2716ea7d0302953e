"""Ridge forecasts of a sensor: its own alone, and their average with a federated ridge forecast."""

from dataclasses import dataclass, field, replace

import numpy as np

from client.tasks.traffic.baseline import Windows
from client.tasks.traffic.sensor import Sensor
from common.arrays import Arrays, Floats, Ints
from common.tasks.traffic.counts import LAGS, PAIRS, SUMS, check_lags, lag_sums, linear_forecast, without_part
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.vocabulary import SensorVariables


@dataclass(frozen=True)
class OwnRidge:
    """Forecaster by a sensor's own ridge regression, which needs no model.

    Args:
        options: Options of the task.
        variables: Vocabulary of the run.
    """

    options: TrafficOptions
    variables: SensorVariables
    residual: bool = field(default=True, init=False)

    def forecasts(self, model: Arrays, sensor: Sensor, first: Ints) -> Floats:
        """Return the profile plus the ridge forecast, N × P × D."""
        forecast: Floats = sensor.profile[first[:, None] + np.arange(self.options.horizon)] + sensor.ridge[first]
        return forecast


ROUNDING = 1e-9
"""Relative rounding error of a sum of squares."""


def compute_sums(sensor: Sensor, options: TrafficOptions) -> Arrays:
    """Compute the sensor's part of the sums over sensors, from residuals of its training part."""
    return lag_sums(sensor.values - sensor.profile, sensor.usable, options.history + options.horizon)


def includes(total: Arrays, part: Arrays) -> bool:
    """Return True if `part` can be a summand of `total`: no more pairs at any lag, no larger squares."""
    squares, own_squares = (np.diagonal(sums[LAGS][0]) for sums in (total, part))
    return bool((total[PAIRS] >= part[PAIRS]).all() and (squares >= own_squares * (1 - ROUNDING)).all())


def with_federated_ridge(sensor: Sensor, statics: Arrays, options: TrafficOptions) -> Sensor:
    """Return the sensor with its ridge forecast averaged with the federated one; unchanged without sums.

    Raises:
        WireError: The sums in `statics` are malformed or have other variables.
    """
    if not sensor.ridge.size or not set(SUMS) <= set(statics):
        return sensor
    sums, noise = without_part(statics)
    check_lags(sums, sensor.values.shape[1])
    weights = linear_forecast(sums, options.history, options.horizon, noise)
    ridge = average_forecasts(sensor.ridge, sensor.inputs - sensor.base, weights, options)
    return replace(sensor, ridge=ridge, shared=weights)


def average_forecasts(ridge: Floats, departures: Floats, weights: Floats, options: TrafficOptions) -> Floats:
    """Average a sensor's ridge forecasts, T × P × D, with the federated ones.

    Without federated weights, or without a window, the own forecasts are returned.

    Args:
        ridge: Ridge forecasts of every window, T × P × D.
        departures: Residuals of the base, T × D.
        weights: Federated weights, H·D × P·D; 0 × 0 if there are none.
        options: Options of the task.
    """
    length, variables = departures.shape
    if len(weights) != options.history * variables or length <= options.history:
        return ridge
    windows, all_windows = Windows(departures, options.history, options.horizon), np.arange(options.history, length)
    federated = (windows.past(all_windows) @ weights).reshape(-1, variables, options.horizon).swapaxes(1, 2)
    average = ridge.copy()
    average[all_windows] = (ridge[all_windows] + federated) / 2
    return average
