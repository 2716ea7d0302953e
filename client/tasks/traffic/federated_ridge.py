"""The local line and everybody's: half of what a sensor itself expects, half of what all sensors' covariances say.

The plain mean of the two: neither is better at every origin, and a weight that fits the past fits the next month worse
(docs/results/traffic.md).
"""

from dataclasses import replace

import numpy as np

from client.tasks.traffic.prepare import Floats, Sensor
from client.tasks.traffic.ridge import Windows
from common.arrays import Arrays
from common.tasks.traffic.counts import LAGS, PAIRS, SUMS, check_lags, lag_sums, linear_forecast
from common.tasks.traffic.options import TrafficOptions

ROUNDING = 1e-9
"""Share of a sum of squares that may be lost where it is added to others."""


def own_sums(sensor: Sensor, options: TrafficOptions) -> Arrays:
    """What the sensor adds to the sums over all: of what its profile leaves over, in its training part."""
    return lag_sums(sensor.values - sensor.profile, sensor.known, options.history + options.horizon)


def includes(total: Arrays, part: Arrays) -> bool:
    """Whether `part` may be one of the sums that a total is of: that has as many pairs at each lag, and as large squares."""
    squares, own = (np.diagonal(sums[LAGS][0]) for sums in (total, part))
    return bool((total[PAIRS] >= part[PAIRS]).all() and (squares >= own * (1 - ROUNDING)).all())


def with_federated_ridge(sensor: Sensor, statics: Arrays, options: TrafficOptions) -> Sensor:
    """The sensor with everybody's line beside its own; as it is where `statics` tell of none.

    Raises:
        WireError: Its sums are of other variables, or no sums.
    """
    if not sensor.line.size or not set(SUMS) <= set(statics):
        return sensor
    sums = {name: statics[name] for name in SUMS}
    check_lags(sums, sensor.values.shape[1])
    weights = linear_forecast(sums, options.history, options.horizon)
    return replace(sensor, line=both(sensor.line, sensor.values - sensor.base, weights, options), shared=weights)


def both(line: Floats, departures: Floats, weights: Floats, options: TrafficOptions) -> Floats:
    """The mean of a sensor's own line, T × P × D, and everybody's; the own one where there is no other, or no window."""
    length, variables = departures.shape
    if len(weights) != options.history * variables or length <= options.history:
        return line
    windows, everywhere = Windows(departures, options.history, options.horizon), np.arange(options.history, length)
    shared = (windows.past(everywhere) @ weights).reshape(-1, variables, options.horizon).swapaxes(1, 2)
    joint = line.copy()
    joint[everywhere] = (line[everywhere] + shared) / 2
    return joint
