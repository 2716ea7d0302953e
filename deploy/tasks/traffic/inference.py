"""Property and forecast of a sensor for the command line."""

from typing import TYPE_CHECKING

from client.tasks.traffic.cold_start import is_cold_start, with_pooled_property
from client.tasks.traffic.inference import forecast
from client.tasks.traffic.prepare import Sensor, prepare
from common.config.overrides import read_overrides
from common.config.parse import parse
from common.errors import DataError
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.task import TASK
from common.tasks.traffic.vocabulary import SensorVariables
from deploy.cli.options import DataRequest
from deploy.cli.output import note
from deploy.tasks.traffic.forecast import ForecastView
from deploy.tasks.traffic.forecaster import find_forecaster, find_series, pooled_for, read_sensors

if TYPE_CHECKING:
    from deploy.tasks.traffic.commands import SensorRequest


def infer_property(
    source: DataRequest, request: "SensorRequest", sets: list[str]
) -> tuple[Sensor, SensorVariables, TrafficOptions]:
    """Return the sensor with its property, its variables and the options of the property.

    Raises:
        ConfigError: An option is wrong, or the run does not exist.
        DataError: The data cannot be read, or lack the sensor.
    """
    config = parse({"method": "fedstl", "task": TASK.name, **read_overrides(sets)})
    dataset, options = read_sensors(source, None), config.options_of(TASK)
    sensor = prepare(find_series(request.site, dataset, source.data), dataset.vocabulary, options, residual=True)
    if is_cold_start(sensor, options):
        run, pooled = pooled_for(source.data, request, dataset.vocabulary, options.property)
        sensor = with_pooled_property(sensor, pooled, options)
        if sensor.pooled:
            note(f"{source.data}: with the property of similar clients of run {run}")
    return sensor, dataset.vocabulary, options


def compute_forecast(source: DataRequest, request: "SensorRequest", horizon: int, checkpoint: str = "") -> ForecastView:
    """Return the forecast of the sensor, by the model of that checkpoint.

    Raises:
        ConfigError: The run does not exist, or its model forecasts fewer steps.
        DataError: The data cannot be read, lack the sensor, or are too few for the model.
    """
    trained = find_forecaster(source, request, checkpoint)
    learner, forecaster = trained.learner, trained.forecaster(by_checkpoint=bool(checkpoint))
    sensor = next(one for one in learner.sensors if not request.site or one.series.name == request.site)
    sensor = with_pooled_property(sensor, trained.pooled, learner.options)
    try:
        made = forecast(forecaster, sensor, trained.model, horizon, trained.pooled)
    except DataError as error:
        raise DataError(f"'{sensor.series.name}': {error}", source.data) from None
    return ForecastView(trained.run, trained.variables.variables, trained.config.options_of(TASK), made)
