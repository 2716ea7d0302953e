"""A sensor's data made ready for a finished run: one that its client took part in, or one of this server's."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from client.data.read import read_all
from client.data.tables.schema import DEFAULT_DIALECT, Dialect
from client.tasks.traffic.data.series import Sensors, Series
from common.arrays import Arrays
from common.config.run import RunConfig
from common.errors import ConfigError, DataError
from common.options import hint
from common.tasks.registry import read_vocabulary
from common.tasks.traffic.counts import STATICS
from common.tasks.traffic.task import TASK
from common.tasks.traffic.vocabulary import SensorVariables
from deploy.cli import options as o
from deploy.commands.runs import config_of, newest, newest_or_none, run_of
from deploy.commands.stored_models import SINCE, StoredModel, find_stored_model
from server.artifacts import RunDirectory

if TYPE_CHECKING:
    from client.tasks.traffic.learner import TrafficLearner

HEADS_ANEW = "its clients keep layers to themselves; this sensor's are made anew here, from one round on its own data"


@dataclass(frozen=True)
class ForecastQuery:
    """What a person asks about.

    Args:
        data: Source of readings.
        site: Which sensor; empty for the first.
        run: The run, by name or folder; empty for the newest.
        client: Name of the client that took part in it; empty for who trained on these data.
        state_dir: Where clients keep their state.
        dialect: Columns and forms of the owner's tables.
    """

    data: str
    site: str
    run: str
    client: str
    state_dir: Path
    dialect: Dialect = DEFAULT_DIALECT

    def kept(self) -> StoredModel | None:
        """What the client of these data keeps of the run."""
        return find_stored_model(
            "traffic", self.data, Path(self.run).resolve().name if self.run else "", self.state_dir, self.client
        )


@dataclass(frozen=True)
class TrainedForecaster:
    """A finished run, the data made ready for it, and the model that their client would use."""

    run: str
    config: RunConfig
    measures: SensorVariables
    learner: "TrafficLearner"
    model: Arrays
    pooled: Arrays


def ready(wanted: ForecastQuery) -> TrainedForecaster:
    """The run that was asked for, or the newest that the data took part in, or else the newest of all.

    Raises:
        ConfigError: There is no such run.
        DataError: The data cannot be read, or lack the sensor.
    """
    from client.tasks.traffic.inference import own_model, personal
    from client.tasks.traffic.learner import TrafficLearner

    if kept := wanted.kept():
        dataset = read(wanted.data, cast(SensorVariables, kept.names), wanted.dialect)
        series_of(wanted.site, dataset, wanted.data)
        learner = TrafficLearner(kept.config.task_run(TASK, dataset.vocabulary), dataset)
        who = f"client {kept.client}{SINCE if kept.grown else ''}" if wanted.client or kept.grown else "their client"
        o.note(f"{wanted.data}: by the model that {who} kept of run {kept.run}")
        return TrainedForecaster(kept.run, kept.config, dataset.vocabulary, learner, kept.model, kept.pooled)
    folder = run_of(wanted.run) if wanted.run else newest(["traffic"])
    config, trained, pooled = _of_server(folder)
    dataset = read(wanted.data, cast(SensorVariables, read_vocabulary("traffic", folder.catalogue())), wanted.dialect)
    sensor = replace(dataset, units=(series_of(wanted.site, dataset, wanted.data),))
    learner = TrafficLearner(config.task_run(TASK, dataset.vocabulary), sensor)
    if personal(config, trained):
        o.note(f"run {folder.path.name}: {HEADS_ANEW}")
    model = own_model(config, learner, trained, pooled)
    return TrainedForecaster(folder.path.name, config, dataset.vocabulary, learner, model, pooled)


def pooled_for(wanted: ForecastQuery, measures: SensorVariables, kind: str) -> tuple[str, Arrays]:
    """The run whose members' pooled properties of that kind a newcomer may take, and these; empty where there is none."""
    if kept := wanted.kept():
        told = kept.run, kept.config, kept.names, kept.pooled
    elif folder := run_of(wanted.run) if wanted.run else newest_or_none(["traffic"]):
        config, _, pooled = _of_server(folder)
        told = folder.path.name, config, read_vocabulary("traffic", folder.catalogue()), pooled
    else:
        return "", {}
    run, config, names, pooled = told
    fits = names == measures and config.options_of(TASK).property == kind
    return (run, pooled) if fits else ("", {})


def read(data: str, measures: SensorVariables | None, dialect: Dialect) -> Sensors:
    """The data under a run's vocabulary, what there is to say of them being said."""
    dataset = cast(Sensors, read_all("traffic", data, vocabulary=measures, dialect=dialect))
    for note in dataset.notes:
        o.note(f"{data}: {note}")
    return dataset


def series_of(site: str, dataset: Sensors, data: str) -> Series:
    """The sensor of that name, or the first; raises DataError if there is none of that name."""
    series = {one.name: one for one in dataset.units}
    if site and site not in series:
        raise DataError(f"no sensor '{site}' among its {len(series)}{hint(site, series)}", data)
    if not site and len(series) > 1:
        o.note(f"{data}: the first of {len(series)} sensors; --site takes another")
    return series[site or next(iter(series))]


def _of_server(folder: RunDirectory) -> tuple[RunConfig, Arrays, Arrays]:
    """A run's configuration, its trained model, and what stands beside it: pooled properties, everybody's sums."""
    config = config_of(folder)
    if config.task != "traffic":
        raise ConfigError(f"run '{folder.path.name}' is of task {config.task}; name one of task traffic with --run")
    trained, _ = folder.load_model()
    pooled = {name: trained.pop(name) for name in STATICS if name in trained}
    return config, trained, pooled
