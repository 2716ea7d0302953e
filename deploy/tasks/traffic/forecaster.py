"""Model for a sensor's data: one that a client on this machine stored, or one of a finished run."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from client.data.read import read_all
from client.inference.model_choice import fit_model, has_own_parameters
from client.inference.stored_models import SINCE, StoredModel
from client.tasks.traffic.data.series import Sensors, Series
from client.tasks.traffic.inference import Forecaster
from client.tasks.traffic.learner import TrafficLearner
from client.tasks.traffic.sensor import OwnRidge
from client.training.comparison import describe_choice, prefers_baseline
from common.arrays import Arrays
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError
from common.tasks.registry import read_vocabulary
from common.tasks.traffic.counts import STATICS
from common.tasks.traffic.task import TASK
from common.tasks.traffic.vocabulary import SensorVariables
from deploy.cli.options import DataRequest
from deploy.cli.output import note
from deploy.federation.runs import find_run, newest, newest_or_none, stored_options
from deploy.serving.models import find_stored_model, load_checkpoint
from deploy.tasks.run import find_unit
from server.record.folder import RunDirectory

if TYPE_CHECKING:
    from deploy.tasks.traffic.task import SensorRequest

FITTED = "its clients have private layers; those of this sensor are trained here, for one round on its own data"


@dataclass(frozen=True)
class TrainedForecaster:
    """Finished run, the data prepared for it, and the model that their client uses."""

    run: str
    config: RunConfig
    variables: SensorVariables
    learner: TrafficLearner
    model: Arrays
    pooled: Arrays

    def forecaster(self, *, by_checkpoint: bool) -> Forecaster:
        """Return the learner, or the sensors' own ridge regression if noise left the model no better.

        A model that was chosen by its checkpoint is used as it is.
        """
        if by_checkpoint or not prefers_baseline(self.config, self.learner, self.model, self.pooled):
            return self.learner
        note(f"run {self.run}: {describe_choice(TASK.name)}")
        return OwnRidge(self.learner.options, self.learner.variables)


def find_forecaster(source: DataRequest, request: "SensorRequest", checkpoint: str = "") -> TrainedForecaster:
    """Return the requested run, else the newest that trained on the data, else the newest of all.

    With a checkpoint, models that clients stored are not used.

    Raises:
        ConfigError: The run does not exist.
        DataError: The data cannot be read, or lack the sensor.
    """
    if not checkpoint and (stored := _find_stored(source.data, request)):
        return _of_client(stored, source, request)
    folder = find_run(request.run) if request.run else newest([TASK.name])
    config, trained, pooled = _open(folder, checkpoint)
    dataset = read_sensors(source, cast(SensorVariables, read_vocabulary(TASK.name, folder.catalogue())))
    sensor = replace(dataset, units=(find_series(request.site, dataset, source.data),))
    learner = TrafficLearner(config.task_run(TASK, dataset.vocabulary), sensor)
    if has_own_parameters(config, trained):
        note(f"run {folder.path.name}: {FITTED}")
    model = fit_model(config, learner, trained, pooled)
    return TrainedForecaster(folder.path.name, config, dataset.vocabulary, learner, model, pooled)


def pooled_for(data: str, request: "SensorRequest", variables: SensorVariables, kind: str) -> tuple[str, Arrays]:
    """Return a run and its pooled properties of that kind; empty if there are none."""
    if stored := _find_stored(data, request):
        run, config, vocabulary, pooled = stored.run, stored.config, stored.vocabulary, stored.statics
    elif folder := find_run(request.run) if request.run else newest_or_none([TASK.name]):
        run, vocabulary = folder.path.name, read_vocabulary(TASK.name, folder.catalogue())
        config, _, pooled = _open(folder)
    else:
        return "", {}
    fits = vocabulary == variables and config.options_of(TASK).property == kind
    return (run, pooled) if fits else ("", {})


def read_sensors(source: DataRequest, variables: SensorVariables | None) -> Sensors:
    """Read the data under a run's vocabulary; print the notes of the reader."""
    dataset = cast(Sensors, read_all(TASK.name, source.data, vocabulary=variables, dialect=source.dialect))
    for line in dataset.notes:
        note(f"{source.data}: {line}")
    return dataset


def find_series(site: str, dataset: Sensors, data: str) -> Series:
    """Return the sensor of that name, or the first; raise DataError if the data lack it."""
    series = cast(Series, find_unit(dataset, site, data, "sensor"))
    if not site and len(dataset.units) > 1:
        note(f"{data}: the first of {len(dataset.units)} sensors; set --site for another")
    return series


def _of_client(stored: StoredModel, source: DataRequest, request: "SensorRequest") -> TrainedForecaster:
    dataset = read_sensors(source, cast(SensorVariables, stored.vocabulary))
    find_series(request.site, dataset, source.data)
    learner = TrafficLearner(stored.config.task_run(TASK, dataset.vocabulary), dataset)
    is_named = bool(request.client) or stored.grown
    client = f"client {stored.client}{SINCE if stored.grown else ''}" if is_named else "their client"
    note(f"{source.data}: by the model that {client} stored of run {stored.run}")
    return TrainedForecaster(stored.run, stored.config, dataset.vocabulary, learner, stored.model, stored.statics)


def _find_stored(data: str, request: "SensorRequest") -> StoredModel | None:
    run = Path(request.run).resolve().name if request.run else ""
    return find_stored_model(TASK.name, data, run, request.state_dir, request.client)


def _open(folder: RunDirectory, checkpoint: str = "") -> tuple[RunConfig, Arrays, Arrays]:
    """Return a run's configuration, its model, and the statistics and pooled properties saved with it."""
    config = parse(stored_options(folder))
    if config.task != TASK.name:
        raise ConfigError(f"run '{folder.path.name}' is of task {config.task}; name one of task {TASK.name} with --run")
    chosen = load_checkpoint(folder, checkpoint)
    if checkpoint:
        note(f"run {folder.path.name}: model of {chosen.about}")
    trained = dict(chosen.model)
    pooled = {name: trained.pop(name) for name in STATICS if name in trained}
    return config, trained, pooled
