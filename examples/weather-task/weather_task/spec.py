"""Weather task: what server and clients agree on. Importing it imports no torch."""

from typing import TYPE_CHECKING

from pydantic import Field

from common.api import Comparison, MetricSpec, Objective, TaskOptions, TaskRun, TaskSpec, Vocabulary

if TYPE_CHECKING:
    from torch import nn


class Fields(Vocabulary):
    """Public names of what every station measures."""

    fields: tuple[str, ...]


class WeatherOptions(TaskOptions):
    """`[tasks.weather]`."""

    lags: int = Field(3, ge=1)
    """Number of earlier readings that predict the next one."""


def build_model(run: TaskRun[WeatherOptions, Fields]) -> "nn.Module":
    """Return a linear map from the last readings to the next one."""
    from torch import nn

    fields = len(run.vocabulary.fields)
    return nn.Linear(run.options.lags * fields, fields)


TASK = TaskSpec(
    name="weather",
    summary="Predict the next reading of weather stations",
    options=WeatherOptions,
    vocabulary=Fields,
    demo=lambda: Fields(fields=("temperature", "humidity")),
    build_model=build_model,
    metrics=(
        MetricSpec("mse", "mse", "Mean squared error", "lower", 4, "Of the next reading, each scaled."),
        MetricSpec("last_mse", "last mse", "Error of the last reading", "lower", 4, "Repeating it.", baseline=True),
    ),
    objective=Objective("mse"),
    simple={"mse": "last_mse"},
    comparison=Comparison("stations", "last reading"),
    defaults={"method": "fedavg", "rounds": 20, "training.lr": 0.1, "training.local-steps": 10},
)
