"""Forecasts by a sensor's own ridge regression alone."""

from dataclasses import dataclass, field

import numpy as np

from client.tasks.traffic.prepare import Sensor
from common.arrays import Arrays, Floats, Ints
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
