"""Export and local serving of the traffic task; importing it must not import torch."""

import csv
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

import numpy as np
from pydantic import Field

from client.data.dataset import AnyDataset
from common.arrays import Arrays
from common.errors import ConfigError, DataError
from common.options import Scalar
from common.tasks.traffic.shared_ridge import STATICS
from deploy.serving.spec import MAX_NAME, Export, ModelAnswer, Request, ServedModel, Serving
from deploy.tasks.spec import TrainedRun

if TYPE_CHECKING:
    from client.tasks.traffic.data.series import Series
    from client.tasks.traffic.inference import Forecast


def split_pooled(model: Arrays) -> tuple[Arrays, Arrays]:
    """Return the parameters of a model, and the statistics and pooled properties saved with it."""
    pooled = {name: a for name, a in model.items() if name in STATICS}
    return {name: a for name, a in model.items() if name not in pooled}, pooled


def forecast_rows(made: "Forecast", variables: Sequence[str]) -> list[dict[str, Scalar | None]]:
    """Return one row for each step and variable; a value that does not exist is None."""
    tables = {"forecast": made.student, "corrected": made.corrected, "low": made.low, "high": made.high}
    columns = {**tables, "profile": made.profile, "low80": made.low80, "high80": made.high80}
    return [
        {"time": str(made.times[t]), "variable": variable}
        | {name: float(table[t, d]) if np.isfinite(table[t, d]) else None for name, table in columns.items()}
        | {"marked": bool(made.marked[t, d])}
        for t in range(len(made.times))
        for d, variable in enumerate(variables)
    ]


MAX_READINGS = 100_000
"""A body of 1 MiB holds fewer."""

SITE = "sensor"


class ForecastRequest(Request):
    """Readings of a sensor, each a time and a value per variable; without any, those of the server's data."""

    readings: list[list[int | float | str | None]] = Field([], max_length=MAX_READINGS)
    horizon: int = Field(24, ge=1)
    site: str = Field("", max_length=MAX_NAME)


def export(run: TrainedRun, dataset: AnyDataset | None) -> Export:
    """Return the forecaster of a run; with data, the one that `fedloom forecast` chooses for them.

    Raises:
        ConfigError: Clients have private layers or models of clusters, and there are no data.
    """
    from client.inference.model_choice import fit_model, has_own_parameters, trained_network
    from client.tasks.traffic.export import exportable
    from client.tasks.traffic.learner import TrafficLearner
    from common.models import models_of_run
    from common.tasks.traffic.task import TASK

    config, vocabulary, (model, statics) = run.config, run.vocabulary, split_pooled(run.model)
    if dataset is None:
        if has_own_parameters(config, model) or len(models_of_run(model)) > 1:
            raise ConfigError(
                f"clients of run '{run.name}' have private layers or models of clusters; add --data FILE --site NAME"
            )
    elif stored := run.find_stored(""):
        config, vocabulary, model, statics = stored.config, stored.vocabulary, stored.model, stored.statics
    else:
        model = fit_model(config, TrafficLearner(config.task_run(TASK, vocabulary), dataset), model, statics)
    network, _ = trained_network(config, vocabulary, model)
    exported = exportable(network, len(vocabulary.variables), config.options_of(TASK))
    return Export(exported, config, vocabulary, statics)


def answer(model: ServedModel, request: ForecastRequest) -> ModelAnswer:
    """Return the forecast after the last reading."""
    from client.tasks.traffic.inference import forecast_by

    series = _read(model, request) if request.readings else model.find(request.site, SITE, "give readings")
    made = forecast_by(model.network, model.config, model.vocabulary, model.statics, series, request.horizon)
    return ModelAnswer(forecast_rows(made, model.vocabulary.variables), (made.fault,) if made.fault else ())


def _read(model: ServedModel, request: ForecastRequest) -> "Series":
    """Read the readings as a table of one sensor, by the task's reader."""
    from client.data.read import read_all
    from client.tasks.traffic.data.series import TIME

    variables = model.vocabulary.variables
    if any(len(row) != 1 + len(variables) for row in request.readings):
        raise DataError(f"a reading is a time and one value each of {', '.join(variables)}")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "readings.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([(TIME, *variables), *request.readings])
        try:
            [series] = read_all(model.config.task, str(path), vocabulary=model.vocabulary).units
        except DataError as error:
            raise DataError(str(error).replace(f"{path}, ", "").replace(str(path), "readings")) from None
    return cast("Series", series)


SERVING = Serving(
    route="forecast",
    request=ForecastRequest,
    export=export,
    answer=answer,
    limits="Not for control of signals or machines without a person: it forecasts usual days.",
    adds_sums=True,
)
