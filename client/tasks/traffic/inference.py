"""Forecasts of a sensor by a trained model or an exported network, in units of the data."""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from client.tasks.registry import Network
from client.tasks.traffic.baseline import fit_ridge, profile
from client.tasks.traffic.data.series import Series, split_series
from client.tasks.traffic.metrics import correct, limits, next_bounds
from client.tasks.traffic.sensor import (
    OwnForecaster,
    Sensor,
    joint_ridge,
    prepare,
    with_choice,
    with_federated_ridge,
    with_pooled_property,
    without_faults,
)
from common.arrays import Arrays, Flags, Floats, Ints
from common.config.run import RunConfig
from common.errors import ConfigError, DataError
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.properties import rows_per_week
from common.tasks.traffic.task import TASK
from common.tasks.traffic.vocabulary import DAY, HOUR, SensorVariables

STUCK_SECONDS = 3 * HOUR
"""Length of constant readings, at the end of the data, that counts as a fault."""

OUTSIDE_SECONDS = 6 * HOUR
"""Length of readings that all violate the property, at the end of the data, that counts as a fault."""

MIN_FAULT = 3
"""Smallest number of readings in a fault."""


@dataclass(frozen=True)
class Forecast:
    """Forecast of a sensor; every table is P × D, in the units of the data.

    Args:
        basis: The sensor that the forecast starts from, with its weekly profile and its property.
        fault: Fault at the end of the data, in words; empty if there is none.
        times: Times of the P steps by the sensor's own clock.
        student: Forecast of the model; the profile if the end of the data is faulty.
        corrected: Forecast of the teacher, moved towards the property.
        low: Lower bounds of the property; NaN where it bounds no single variable.
        high: Upper bounds.
        profile: Weekly profile at these times.
        low80: Lower bounds of the 80 % interval by the sensor's own past errors; NaN with too few.
        high80: Upper bounds.
        repaired: Number of readings of the history that its property forbids and the profile replaced.
    """

    basis: Sensor
    fault: str
    times: NDArray[np.datetime64]
    student: Floats
    corrected: Floats
    low: Floats
    high: Floats
    profile: Floats
    low80: Floats
    high80: Floats
    repaired: int = field(default=0, kw_only=True)

    @property
    def marked(self) -> Flags:
        """Mask of the values that the teacher corrected."""
        return np.asarray(self.student != self.corrected)


class Forecaster(Protocol):
    """Model of the traffic task with its options."""

    @property
    def options(self) -> TrafficOptions:
        """Options of the task."""

    @property
    def variables(self) -> SensorVariables:
        """Vocabulary of the run."""

    @property
    def residual(self) -> bool:
        """True if forecasts are residuals of the weekly profile."""

    def forecasts(self, model: Arrays, sensor: Sensor, first: Ints) -> Floats:
        """Return forecasts in standard deviations, N × P × D, of windows whose first targets are at `first`."""


def forecast(learner: Forecaster, sensor: Sensor, model: Arrays, horizon: int, pooled: Arrays) -> Forecast:
    """Forecast the `horizon` steps after the last reading, and correct them by the property.

    Profile, baseline and property are fitted anew to all readings. `pooled` may hold the federated ridge statistics, and the
    property that a cold-start client adopts. If the end of the data is faulty, the profile of the training split replaces
    the model's forecast, under the property of that split.

    Raises:
        ConfigError: The model forecasts fewer steps.
        DataError: The model needs more readings than there are.
    """
    options, length = learner.options, len(sensor.values)
    if horizon > options.horizon:
        raise ConfigError(
            f"the model forecasts {options.horizon} steps, not {horizon}; set --horizon to {options.horizon} at most,"
            f" or train a run with --set tasks.traffic.horizon={horizon}"
        )
    if length < options.history:
        raise DataError(
            f"{length} readings are fewer than the {options.history} that the model needs; give more readings"
        )
    fault, pooled = faulty(sensor, options), with_choice(sensor, pooled, options)
    whole = prepare(without_faults(sensor), learner.variables, options, residual=learner.residual, whole=True)
    basis = sensor if fault else with_pooled_property(with_federated_ridge(whole, pooled, options), pooled, options)
    longer, coming = _longer(basis, options, residual=learner.residual), slice(length, length + horizon)
    usual, first = longer.profile[length : length + options.horizon], np.array([length])
    made = usual[None] if fault else learner.forecasts(model, longer, first)
    student, corrected = made[0, :horizon], correct(longer, made, first)[0, :horizon]
    floor = sensor.scaler.scale(np.zeros(1)) if sensor.series.values.min() >= 0 else -np.inf
    errors = _errors(learner, sensor, model, pooled, fault)
    interval = [np.maximum(student + error[:horizon], floor) for error in errors]
    low, high = limits(longer, student, length)
    tables = student, corrected, low, high, usual[:horizon], *interval
    times, repaired = longer.series.times(sensor.step)[coming], int(sensor.repaired[-options.history :].sum())
    return Forecast(basis, fault, times, *map(sensor.scaler.unscale, tables), repaired=0 if fault else repaired)


def faulty(sensor: Sensor, options: TrafficOptions) -> str:
    """Return the fault of the last readings in words; empty if there is none.

    A sensor is stuck if one reading lasts for three hours, and longer than ever in its training split or half of the time
    against its property. A sensor is faulty if all readings of the last six hours violate its property.
    """
    outside = sensor.ranges.excess(sensor.values, sensor.clock) > 0
    past = split_series(sensor.series, options, sensor.step).train_end
    for d in range(sensor.values.shape[1]):
        column = sensor.series.values[:, d]
        run = int((np.cumsum(column[::-1] != column[-1]) == 0).sum())
        before = _longest_run(column[: min(past, len(column) - run)])
        if run >= max(MIN_FAULT, STUCK_SECONDS // sensor.step) and (run > before or outside[-run:, d].mean() >= 0.5):
            return f"its last {run} readings are all {column[-1]:g}: the sensor seems dead or stuck"
    last = max(MIN_FAULT, OUTSIDE_SECONDS // sensor.step)
    if outside[-last:].any(axis=1).all():
        return f"its last {last} readings all violate the property of its past: the sensor seems faulty"
    return ""


def held_later(sensor: Sensor) -> tuple[float, int]:
    """Return the share of complete later days that satisfy the property, and their number.

    Later days follow the sensor's past; the share of no day is NaN.
    """
    seen = sensor.past + np.flatnonzero(sensor.observed[sensor.past :].all(axis=1))
    days = sensor.series.times(sensor.step)[seen].astype("datetime64[D]")
    margins = sensor.calibrated.margins[seen]
    satisfied = sensor.ranges.excess(sensor.values[seen], sensor.clock[seen], margins).max(axis=1) <= 0
    names, readings = np.unique(days, return_counts=True)
    complete = [bool(satisfied[days == day].all()) for day in names[readings == DAY // sensor.step]]
    return (float(np.mean(complete)) if complete else float("nan")), len(complete)


def _errors(learner: Forecaster, sensor: Sensor, model: Arrays, pooled: Arrays, fault: str) -> tuple[Floats, Floats]:
    """Return the bounds of past errors of the model, or of the profile after a fault, P × D."""
    if fault:
        learner = OwnForecaster(learner.options, learner.variables, with_ridge=False)
    else:
        sensor = with_federated_ridge(sensor, pooled, learner.options)
    return next_bounds(partial(learner.forecasts, model, sensor), sensor)


def _longer(sensor: Sensor, options: TrafficOptions, *, residual: bool) -> Sensor:
    """Return the sensor with a horizon of unobserved readings added, and their profile."""
    more = options.horizon, sensor.values.shape[1]
    usable = np.concatenate([sensor.usable, np.zeros(options.horizon, bool)])
    slots = np.concatenate([sensor.slots, (sensor.slots[-1] + 1 + np.arange(options.horizon)) % sensor.week])
    clock = slots * sensor.step // (7 * DAY // rows_per_week(sensor.step))
    values = np.concatenate([sensor.values, np.zeros(more)])
    usual = profile(values, slots, usable, sensor.week)
    observed = np.concatenate([sensor.observed, np.zeros(more, bool)])
    unseen = replace(sensor.series, values=sensor.scaler.unscale(values), observed=observed)
    base, inputs = usual if residual else np.zeros_like(usual), np.concatenate([sensor.inputs, np.zeros(more)])
    ridge = fit_ridge(inputs - base, usable, options) if residual else sensor.ridge
    margins = np.concatenate([sensor.calibrated.margins, np.zeros(options.horizon)])
    longer = replace(sensor, series=unseen, values=values, inputs=inputs, profile=usual, base=base, usable=usable)
    calibrated = replace(sensor.calibrated, margins=margins)
    return replace(longer, slots=slots, clock=clock, calibrated=calibrated, ridge=joint_ridge(longer, ridge, options))


def _longest_run(column: Floats) -> int:
    edges = np.flatnonzero(np.diff(column)) + 1
    return int(np.diff([0, *edges, len(column)]).max(initial=0))


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
