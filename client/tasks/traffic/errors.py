"""Errors of one sensor's forecasts on held-out data; NaN without any."""

from collections.abc import Callable

from client.tasks.traffic.prepare import Sensor
from common.arrays import Floats, Ints


def forecast_error(sensor: Sensor, split: str, horizon: int, forecast: Callable[[Ints], Floats]) -> float:
    """Return the MSE of forecasts, a function of the first targets."""
    first = sensor.starts(split)
    if not len(first):
        return float("nan")
    _, places = sensor.targets(first, horizon)
    return sensor.error(forecast(first), places)


def ridge_error(sensor: Sensor, split: str, horizon: int) -> float:
    """Return the MSE of the profile plus the ridge forecast; NaN without a ridge regression."""
    if not sensor.ridge.size:
        return float("nan")
    _, places = sensor.targets(sensor.starts(split), horizon)
    return forecast_error(sensor, split, horizon, lambda first: sensor.profile[places] + sensor.ridge[first])
