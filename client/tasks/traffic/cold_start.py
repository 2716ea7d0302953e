"""What a sensor with little past obeys: a property pooled from members of the federation that are alike in shape.

Its own ranges, of five or seven days, held on 2 to 16 % of the true days to come (Boroondara); docs/results/traffic.md
compares them with pooled ones.
"""

from dataclasses import replace

import numpy as np

from client.tasks.traffic.prepare import Sensor
from common.arrays import Arrays
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.ranges import POOLED, middle


def is_new(sensor: Sensor, options: TrafficOptions) -> bool:
    """Whether the sensor has too few readings to say by itself what it obeys, told in days of them."""
    return sensor.days < options.newcomer_days


def adopted(sensor: Sensor, statics: Arrays, options: TrafficOptions) -> Sensor:
    """A new sensor under the weaker of its own property and that of the group whose ranges run closest to its readings.

    As it is where it is not new, where nothing was read, or where `statics` tell of no group.

    Args:
        sensor: With its own property.
        statics: Of a model; under the names of `POOLED` bounds of G groups, in units of each member's own scaler.
        options: Of the run.
    """
    low, high = (statics.get(name, np.zeros(0)) for name in POOLED)
    own = sensor.ranges
    if (
        not is_new(sensor, options)
        or not sensor.known.any()
        or low.shape[1:] != own.low.shape
        or low.shape != high.shape
    ):
        return sensor
    seen, readings = sensor.clock[sensor.known], own.bounded(sensor.values[sensor.known])
    j = int(np.argmin([np.square(readings - table[seen]).mean() for table in middle(low, high)]))
    return replace(sensor, ranges=own.weaker(low[j], high[j]), held=float("nan"), pooled=True)
