"""A sensor's forecast and property, by the model for its data: as a table, as JSON and as a figure."""

from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

from client.data.read import read_all
from client.inference.model_choice import fit_model, has_own_parameters
from client.inference.stored_models import SINCE, StoredModel
from client.tasks.traffic.data.series import Sensors, Series
from client.tasks.traffic.inference import Forecast, Forecaster, forecast
from client.tasks.traffic.learner import TrafficLearner
from client.tasks.traffic.metrics import MIN_ERRORS, limits
from client.tasks.traffic.sensor import (
    OwnForecaster,
    Sensor,
    baseline_statics,
    is_cold_start,
    prepare,
    with_federated_ridge,
    with_pooled_property,
)
from client.training.comparison import choose_answer, describe_choice
from common.arrays import Arrays
from common.config.parse import parse, read_overrides
from common.config.run import RunConfig
from common.errors import ConfigError, DataError
from common.tasks.registry import read_vocabulary
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.task import TASK
from common.tasks.traffic.vocabulary import DAY, SensorVariables
from deploy.cli.options import DataRequest
from deploy.cli.output import aligned, note
from deploy.data.partitions import remembered
from deploy.federation.runs import find_run, newest, newest_or_none, stored_options
from deploy.serving.models import find_stored_model, load_checkpoint
from deploy.tasks.run import find_unit
from deploy.tasks.spec import ForecastExample, TrainedRun
from deploy.tasks.traffic.model_service import forecast_rows, split_pooled
from deploy.tasks.traffic.property import describe_satisfaction, describe_unjudged
from deploy.tasks.traffic.words import digits_for, number
from server.record.folder import RunDirectory

if TYPE_CHECKING:
    from deploy.tasks.traffic.task import SensorRequest

DAYS_BEFORE = 3
"""Days of readings in a figure before the forecast."""

REPAIRED = "the sensor's property forbids them, and the forecast read its profile instead"


@dataclass(frozen=True)
class ForecastView:
    """Forecast of a sensor, with the run and the options behind it.

    Args:
        run: Name of the run that trained the model.
        variables: Names of the variables.
        options: Task options of the run.
        forecast: Forecast in the units of the data.
    """

    run: str
    variables: tuple[str, ...]
    options: TrafficOptions
    forecast: Forecast

    @property
    def site(self) -> str:
        """Name of the sensor."""
        return self.forecast.basis.series.name

    def as_lines(self) -> list[str]:
        """Return a table for each variable; a star marks values that the teacher corrected.

        Without enough past errors, the column of the interval is empty and a line says why.
        """
        f = self.forecast
        lines = [f"{self.site} by run {self.run}"]
        lines += [f"{f.fault}; the weekly profile replaces the forecast"] if f.fault else []
        read = self.options.history * len(self.variables)
        lines += [f"{f.repaired} of the last {read} readings were repaired: {REPAIRED}"] if f.repaired else []
        for d, variable in enumerate(self.variables):
            lines += ["", *self._table(d, variable)]
        count, phi = int(f.marked.sum()), f.basis.stated
        corrected = f"* {count} of {f.marked.size} forecasts {'move' if phi else 'violate the property'}"
        corrected = corrected if count else "no forecast violates it"
        corrected = (describe_unjudged(f.basis, phi) if phi else "") or corrected
        held = describe_satisfaction(f.basis, self.options)
        interval = "80 % interval: by the sensor's own past errors at each step, in held-out readings"
        if np.isnan(f.low80).all():
            interval = f"80 % interval: none; it needs {MIN_ERRORS} past errors in held-out readings"
        return [*lines, "", interval, f"property: {'; '.join(held)}", corrected]

    def as_json(self) -> dict[str, Any]:
        """Return one row for each step and variable."""
        f = self.forecast
        about = {"site": self.site, "run": self.run, "pooled": f.basis.pooled}
        return {**about, "fault": f.fault, "repaired": f.repaired, "rows": forecast_rows(f, self.variables)}

    def _table(self, d: int, variable: str) -> list[str]:
        f = self.forecast
        shown = np.concatenate([table[:, d] for table in (f.low, f.high, f.student)])
        digits = digits_for(float(np.ptp(shown[np.isfinite(shown)])))
        numbers = [
            [number(float(value), digits) for value in table[:, d]]
            for table in (f.student, f.low80, f.high80, f.corrected, f.low, f.high)
        ]
        cells = [numbers[0], _between(*numbers[1:3]), numbers[3], _between(*numbers[4:])]
        stars = ["*" if mark else "" for mark in f.marked[:, d]]
        rows = [(variable, "profile" if f.fault else "forecast", "80 % interval", "corrected", "property", "")]
        rows += list(zip(map(_moment, f.times), *cells, stars, strict=True))
        return list(aligned(rows, str.rjust))


def draw(view: ForecastView, path: Path) -> None:
    """Write a figure of last readings, forecast, its 80 % interval, its correction and the property.

    The suffix of the path sets the format.
    """
    with rc_context(_STYLE):  # type: ignore[arg-type]  # its keys are typed as literals
        figure = Figure(figsize=(9.0, 0.7 + 3.1 * len(view.variables)), layout="constrained")
        for d, axes in enumerate(figure.subplots(len(view.variables), sharex=True, squeeze=False)[:, 0]):
            _draw(axes, view, d)
        figure.suptitle(view.site, x=0.01, ha="left", fontweight="bold")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)


def _draw(axes: Axes, view: ForecastView, d: int) -> None:
    f, sensor = view.forecast, view.forecast.basis
    count = DAYS_BEFORE * DAY // sensor.step
    times, readings = sensor.series.times(sensor.step)[-count:], sensor.series.values[-count:, d]
    if np.isfinite(f.low[:, d]).any():
        axes.fill_between(f.times, f.low[:, d], f.high[:, d], color=_GREY, alpha=0.16, linewidth=0, label="property")
    if np.isfinite(f.low80[:, d]).any():
        band = f.low80[:, d], f.high80[:, d]
        axes.fill_between(f.times, *band, color=_BLUE, alpha=0.28, linewidth=0, label="80 % interval")
    axes.plot(times, readings, color=_GREY, label="readings")
    if not f.fault:
        axes.plot(f.times, f.profile[:, d], color=_GREY, linewidth=1, linestyle=(0, (2, 2)), label="profile")
    axes.plot(f.times, f.student[:, d], color=_BLUE, label="profile" if f.fault else "forecast")
    marked = f.marked[:, d]
    if marked.any():
        axes.plot(f.times, f.corrected[:, d], color=_RED, linewidth=1.2, label="corrected")
        axes.plot(f.times[marked], f.corrected[marked, d], "o", color=_RED, markersize=4)
    axes.axvline(f.times[0], color=_GREY, linewidth=0.7)
    axes.set_ylabel(view.variables[d])
    locator = AutoDateLocator()  # type: ignore[no-untyped-call]  # matplotlib types no dates
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, formats=_DATES, show_offset=False))  # type: ignore[no-untyped-call]
    axes.legend(loc="upper left", ncols=6, frameon=False, fontsize=8.5)
    axes.set_ylim(top=axes.get_ylim()[1] + 0.12 * np.ptp(axes.get_ylim()))


def _between(low: list[str], high: list[str]) -> list[str]:
    """Return `low to high` in columns of equal width; empty without a number."""
    widths = [max(map(len, column)) for column in (low, high)]
    pairs = zip(low, high, strict=True)
    return [f"{a.rjust(widths[0])} to {b.rjust(widths[1])}" if a and b else "" for a, b in pairs]


def _moment(time: np.datetime64) -> str:
    clock = "%H:%M" if time == time.astype("datetime64[m]") else "%H:%M:%S"
    return f"{time.astype('datetime64[s]').item():%a %Y-%m-%d {clock}}"


_DATES = ["%Y", "%b %Y", "%a %-d %b", "%H:%M", "%H:%M", "%H:%M"]
_BLUE, _RED, _GREY = "#2f66ad", "#cc5a35", "#5a6876"
_STYLE = {
    "svg.hashsalt": "fedloom",
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e2dd",
    "grid.linewidth": 0.7,
    "axes.edgecolor": "#b9b6b0",
    "lines.linewidth": 1.6,
}


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
        """Return the learner, or a baseline of the sensor's own if that is better on its held-out data.

        A model that was chosen by its checkpoint is used as it is.
        """
        baseline = "" if by_checkpoint else choose_answer(self.config, self.learner, {"": self.model}, self.pooled)
        if not baseline:
            return self.learner
        [remark] = describe_choice(baseline)
        note(f"run {self.run}: {remark}")
        return OwnForecaster(self.learner.options, self.learner.variables, baseline == next(iter(TASK.baselines)))


def find_forecaster(source: DataRequest, request: "SensorRequest", checkpoint: str = "") -> TrainedForecaster:
    """Return the requested run, else the newest that trained on the data, else the newest of all.

    With a checkpoint, models that clients stored are not used.

    Raises:
        ConfigError: The run does not exist.
        DataError: The data cannot be read, or lack the sensor.
    """
    newest_run = find_run(request.run) if request.run else newest_or_none([TASK.name])
    source = remembered(source, newest_run.path, TASK.name, request.state_dir) if newest_run else source
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
    return config, *split_pooled(chosen.model)


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
    pooled = trained.pooled if forecaster is learner else baseline_statics(trained.pooled)
    try:
        made = forecast(forecaster, sensor, trained.model, horizon, pooled)
    except DataError as error:
        raise DataError(f"'{sensor.series.name}': {error}", source.data) from None
    return ForecastView(trained.run, trained.variables.variables, trained.config.options_of(TASK), made)


COUNT = 3
"""Number of sensors."""

NOTE = "Held-out readings from {first}; the interval is the property of the sensor's past."

FORMULA_NOTE = "Held-out readings from {first}."


def held_out_forecasts(run: TrainedRun) -> list[ForecastExample]:
    """Return the last held-out forecast of the first sensors that hold readings out."""
    trained, pooled = split_pooled(run.model)
    dataset: Sensors = run.read("")
    made = (_held_out_forecast(run, dataset, series, trained, pooled) for series in dataset.units)
    return list(islice(filter(None, made), COUNT))


def _held_out_forecast(
    run: TrainedRun, dataset: Sensors, series: Series, trained: Arrays, pooled: Arrays
) -> ForecastExample | None:
    """Return the forecast of one sensor's first variable; None if the sensor holds nothing out."""
    learner = TrafficLearner(run.config.task_run(TASK, dataset.vocabulary), replace(dataset, units=(series,)))
    [sensor], options = learner.sensors, learner.options
    if not len(sensor.test):
        return None
    model = fit_model(run.config, learner, trained, pooled)
    sensor = with_pooled_property(with_federated_ridge(sensor, pooled, options), pooled, options)
    first = sensor.test[-1:]
    student = learner.forecasts(model, sensor, first)[0]
    truth, places = sensor.targets(first, options.horizon)
    low, high = limits(sensor, student, int(first[0]))
    truth, student, low, high = (sensor.scaler.unscale(table)[:, 0] for table in (truth[0], student, low, high))
    times = sensor.series.times(sensor.step)[places[0]].astype("datetime64[m]")
    digits = digits_for(float(np.ptp(truth)))
    note = (FORMULA_NOTE if sensor.stated else NOTE).format(first=str(times[0]).replace("T", " "))
    clock = [str(time)[11:] for time in times]
    values = (
        [round(float(value), digits + 2) if np.isfinite(value) else None for value in table]
        for table in (student, low, high, truth)
    )
    return ForecastExample(f"{series.name}: {dataset.vocabulary.variables[0]}", note, digits, clock, *values)
