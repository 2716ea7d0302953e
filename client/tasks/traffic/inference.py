"""From a finished model to what a sensor will read next, in the data's own units; on the client, about its own data."""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from client.state import MemoryStore
from client.tasks.learner import training_loss
from client.tasks.traffic.cold_start import with_pooled_property
from client.tasks.traffic.data.split import split_series
from client.tasks.traffic.federated_ridge import average_forecasts, with_federated_ridge
from client.tasks.traffic.learner import TrafficLearner
from client.tasks.traffic.prepare import Sensor, fit_ridge, prepare
from client.tasks.traffic.profile import profile
from client.trainers.registry import build_trainer
from client.training.adaptation import split_models
from client.training.cohort import select_models, train
from client.training.evaluation import ADAPT
from client.training.participant import Participant
from common.arrays import Arrays
from common.config.run import RunConfig
from common.errors import ConfigError, DataError
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.ranges import rows_per_week
from common.tasks.traffic.task import TASK
from common.tasks.traffic.vocabulary import DAY, HOUR
from common.wire.messages import TrainRequest

STUCK = 3 * HOUR
OUTSIDE = 6 * HOUR
"""Seconds at the end of the data after which readings that do not move, or that obey nothing, count as a fault."""
LEAST = 3
"""Readings that a fault takes at least."""

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Forecast:
    """What a sensor will read; every table is P × D, in the data's own units.

    Args:
        basis: The sensor as it was forecast from: what it usually reads, and its property.
        fault: What is wrong with the end of the data; empty where nothing is.
        times: Of the P steps, by the sensor's own clock.
        student: The model's forecast, or the profile where the end of the data is faulty.
        corrected: The teacher's: the closest that obeys the property.
        low: Lower bounds of the property; NaN where it bounds no variable by itself.
        high: Upper bounds.
        profile: What the sensor usually reads then.
    """

    basis: Sensor
    fault: str
    times: NDArray[np.datetime64]
    student: Floats
    corrected: Floats
    low: Floats
    high: Floats
    profile: Floats

    @property
    def marked(self) -> Flags:
        """Where the teacher corrected."""
        return np.asarray(self.student != self.corrected)


def own_model(config: RunConfig, learner: TrafficLearner, trained: Arrays, pooled: Arrays) -> Arrays:
    """The model that a client without a memory of the run would use: of the cluster that suits its past best.

    `trained` is the run's model, or its K models as `0/name` and so on; `pooled` is what stands beside it. Where the
    method leaves layers with the client, one round of training on its own data follows, of which nothing is sent.
    """
    models = split_models(trained)
    if not learner.examples:
        return models[0]
    model = min(models, key=lambda one: training_loss(learner, one, pooled))
    store, request = MemoryStore(), TrainRequest(1, "", model, statics=pooled)
    chosen, about = config.method_options, ("", config.run_id, config.seed, learner, store, request)
    adapted = build_trainer(chosen).personalize(Participant(*about, chosen.steps(ADAPT)))
    if adapted is not None:
        return select_models(chosen, model, adapted)[""]
    if personal(config, model):
        train(chosen, [Participant(*about, chosen.steps(request.phase))])
    return select_models(chosen, model, store.load(config.run_id))[""]


def personal(config: RunConfig, names: Collection[str]) -> bool:
    """Whether the method leaves layers, by those names or as `0/name`, or a whole model with each client."""
    capabilities, names = config.capabilities, {name.partition("/")[2] or name for name in names}
    return capabilities.own_model != "none" or bool(TASK.private(names, capabilities))


def forecast(learner: TrafficLearner, sensor: Sensor, model: Arrays, horizon: int, pooled: Arrays) -> Forecast:
    """The `horizon` steps after the sensor's last reading, by the model and corrected by the sensor's own property.

    Profile, line and property are learnt anew from all readings, since nothing has to be held out from what nobody has seen;
    `pooled` may tell of everybody's line, and of the property that a newcomer adopts. Where the end of the data is faulty the
    model has nothing to go by: the profile of the training part takes its place, under the property of that part.

    Raises:
        ConfigError: The model forecasts fewer steps.
        DataError: It looks back on more readings than there are.
    """
    options, length = learner.options, len(sensor.values)
    if horizon > options.horizon:
        raise ConfigError(
            f"the model forecasts {options.horizon} steps, not {horizon}: ask for a --horizon of up to"
            f" {options.horizon}, or train a run with --set tasks.traffic.horizon={horizon}"
        )
    if length < options.history:
        raise DataError(f"it has {length} readings; the model looks back on {options.history}, give at least as many")
    fault = faulty(sensor, options)
    whole = prepare(sensor.series, learner.variables, options, residual=learner.residual, whole=True)
    basis = sensor if fault else with_pooled_property(with_federated_ridge(whole, pooled, options), pooled, options)
    longer, coming = _longer(basis, options, residual=learner.residual), slice(length, length + horizon)
    usual, clock = longer.profile[coming], longer.clock[coming]
    student = usual if fault else learner.forecasts(model, longer, np.array([length]))[0, :horizon]
    tables = student, basis.ranges.project(student, clock), *basis.ranges.limits(student, clock), usual
    return Forecast(basis, fault, longer.series.times(sensor.step)[coming], *map(sensor.scaler.unscale, tables))


def faulty(sensor: Sensor, options: TrafficOptions) -> str:
    """What is wrong with the last readings, in words; empty where nothing is.

    A sensor is stuck if it has shown one reading for three hours, and longer than ever in its training part or half of the
    time where its property forbids it; it has gone astray if all its readings of the last six hours lie outside.
    """
    outside = sensor.ranges.excess(sensor.values, sensor.clock) > 0
    past = split_series(sensor.series, options, sensor.step).train_end
    for d in range(sensor.values.shape[1]):
        column = sensor.series.values[:, d]
        run = int((np.cumsum(column[::-1] != column[-1]) == 0).sum())
        before = _longest_run(column[: min(past, len(column) - run)])
        if run >= max(LEAST, STUCK // sensor.step) and (run > before or outside[-run:, d].mean() >= 0.5):
            return f"its last {run} readings are all {column[-1]:g}: the sensor seems dead or stuck"
    last = max(LEAST, OUTSIDE // sensor.step)
    if outside[-last:].any(axis=1).all():
        return f"its last {last} readings all lie outside what its past obeys: the sensor seems faulty"
    return ""


def held_later(sensor: Sensor) -> tuple[float, int]:
    """Share that obeys of the days observed in full after its past, and their number; NaN where there is none."""
    seen = sensor.past + np.flatnonzero(sensor.observed[sensor.past :].all(axis=1))
    days = sensor.series.times(sensor.step)[seen].astype("datetime64[D]")
    obeys = sensor.ranges.excess(sensor.values[seen], sensor.clock[seen]).max(axis=1) <= 0
    names, readings = np.unique(days, return_counts=True)
    whole = [bool(obeys[days == day].all()) for day in names[readings == DAY // sensor.step]]
    return (float(np.mean(whole)) if whole else float("nan")), len(whole)


def _longer(sensor: Sensor, options: TrafficOptions, *, residual: bool) -> Sensor:
    """The sensor with a horizon more of readings that nobody has seen, and what it usually reads then."""
    more = options.horizon, sensor.values.shape[1]
    usable = np.concatenate([sensor.usable, np.zeros(options.horizon, bool)])
    slots = np.concatenate([sensor.slots, (sensor.slots[-1] + 1 + np.arange(options.horizon)) % sensor.week])
    clock = slots * sensor.step // (7 * DAY // rows_per_week(sensor.step))
    values = np.concatenate([sensor.values, np.zeros(more)])
    usual = profile(values, slots, usable, sensor.week)
    observed = np.concatenate([sensor.observed, np.zeros(more, bool)])
    unseen = replace(sensor.series, values=sensor.scaler.unscale(values), observed=observed)
    base = usual if residual else np.zeros_like(usual)
    ridge = fit_ridge(values - base, usable, options) if residual else sensor.ridge
    ridge = average_forecasts(ridge, values - base, sensor.shared, options) if sensor.shared.size else ridge
    longer = replace(sensor, series=unseen, values=values, profile=usual, base=base, ridge=ridge)
    return replace(longer, slots=slots, clock=clock, usable=usable)


def _longest_run(column: Floats) -> int:
    edges = np.flatnonzero(np.diff(column)) + 1
    return int(np.diff([0, *edges, len(column)]).max(initial=0))
