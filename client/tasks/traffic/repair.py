"""Repair of histories: readings that the sensor's own property forbids are replaced by its profile."""

from dataclasses import replace

import numpy as np

from client.tasks.traffic.data.series import Series
from client.tasks.traffic.prepare import Sensor
from common.tasks.traffic.vocabulary import DAY

REPAIRED_DAYS = 14
"""Days at the end of the data whose forbidden readings are faults; earlier ones change the property."""


def without_faults(sensor: Sensor) -> Series:
    """Return the series with repaired readings in its last two weeks; these count as filled."""
    recent = np.arange(len(sensor.values)) >= len(sensor.values) - REPAIRED_DAYS * DAY // sensor.step
    broken = sensor.repaired & recent[:, None]
    values = np.where(broken, sensor.scaler.unscale(sensor.inputs), sensor.series.values)
    return replace(sensor.series, values=values, observed=sensor.observed & ~broken)
