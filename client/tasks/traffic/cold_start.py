"""Property of a cold-start sensor: pooled from clients with properties of similar shape.

Own ranges from five or seven days were satisfied on 2 to 16 % of the following true days (Boroondara). A comparison with pooled
ranges is in docs/results/traffic.md.
"""

from dataclasses import replace

import numpy as np

from client.tasks.traffic.prepare import Sensor
from common.arrays import Arrays
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.ranges import POOLED, middle


def is_cold_start(sensor: Sensor, options: TrafficOptions) -> bool:
    """Return True if the sensor has fewer days of readings than the option `newcomer-days`."""
    return sensor.days < options.newcomer_days


def with_pooled_property(sensor: Sensor, statics: Arrays, options: TrafficOptions) -> Sensor:
    """Return a cold-start sensor with the weaker of its own property and the closest pooled one.

    The closest group has ranges with the smallest mean squared distance to the sensor's readings. A sensor that is not new,
    has no readings, or has no matching groups in `statics` is returned unchanged.

    Args:
        sensor: Sensor with its own property.
        statics: Untrained inputs of a model; `POOLED` names bounds of G groups in units of each client's scaler.
        options: Options of the task.
    """
    low, high = (statics.get(name, np.zeros(0)) for name in POOLED)
    ranges = sensor.ranges
    if (
        not is_cold_start(sensor, options)
        or not sensor.usable.any()
        or low.shape[1:] != ranges.low.shape
        or low.shape != high.shape
    ):
        return sensor
    clock, readings = sensor.clock[sensor.usable], ranges.bounded_values(sensor.values[sensor.usable])
    j = int(np.argmin([np.square(readings - table[clock]).mean() for table in middle(low, high)]))
    return replace(sensor, ranges=ranges.weaken(low[j], high[j]), held=float("nan"), pooled=True)
