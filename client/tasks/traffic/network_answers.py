"""Forecasts by an exported network, without torch."""

from dataclasses import dataclass

import numpy as np

from client.inference.network import Network
from client.tasks.traffic.cold_start import with_pooled_property
from client.tasks.traffic.data.series import Series
from client.tasks.traffic.inference import Forecast, forecast
from client.tasks.traffic.prepare import Sensor, prepare
from common.arrays import Arrays, Floats, Ints
from common.config.run import RunConfig
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.task import TASK
from common.tasks.traffic.vocabulary import SensorVariables


@dataclass(frozen=True)
class ServedForecaster:
    """Exported forecaster.

    Args:
        network: The exported network.
        options: Options of the task.
        variables: Vocabulary of the run.
        residual: True if forecasts are residuals of the weekly profile.
    """

    network: Network
    options: TrafficOptions
    variables: SensorVariables
    residual: bool

    def forecasts(self, model: Arrays, sensor: Sensor, first: Ints) -> Floats:
        """Return forecasts in standard deviations, N × P × D; see `TrafficLearner.forecasts`."""
        past = first[:, None] + np.arange(-self.options.history, 0)
        future = first[:, None] + np.arange(self.options.horizon)
        inputs, base = sensor.inputs.astype(np.float32), sensor.base.astype(np.float32)
        made = self.network({"history": inputs[past] - base[past]}) + base[future]
        return np.asarray(made + sensor.ridge[first].astype(np.float32) if sensor.ridge.size else made, np.float64)


def forecast_by(
    network: Network, config: RunConfig, variables: SensorVariables, statics: Arrays, series: Series, horizon: int
) -> Forecast:
    """Return the forecast that `forecast` returns, by an exported network."""
    options, residual = config.options_of(TASK), config.model == "default"
    sensor = with_pooled_property(prepare(series, variables, options, residual=residual), statics, options)
    served = ServedForecaster(network, options, variables, residual)
    return forecast(served, sensor, {}, horizon, statics)
