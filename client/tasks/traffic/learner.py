"""Traffic learner: windows of series as tensors, objective F = MSE + λ·L_p (Eq 2)."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call

from client.tasks.learner import PROPERTY, StepTargets, means_over_windows, shell
from client.tasks.traffic.data.series import Sensors
from client.tasks.traffic.formula_targets import Lessons, find_doubt
from client.tasks.traffic.metrics import baseline_metrics, evaluated, forecast_errors, forecast_metrics, split_coverage
from client.tasks.traffic.sensor import (
    OwnForecaster,
    Sensor,
    baseline_statics,
    choice_errors,
    compute_sums,
    includes,
    prepare,
    warn_too_short,
    with_federated_ridge,
    with_pooled_property,
)
from client.training.foresight import ask
from client.training.stacks import Tensors
from common.arrays import Arrays, Floats, Ints, add, sub
from common.models import tensors
from common.tasks.spec import TaskRun
from common.tasks.traffic import shared_ridge
from common.tasks.traffic.autocovariances import LAGS, linear_forecast, to_sums
from common.tasks.traffic.model import violation
from common.tasks.traffic.options import TrafficOptions, compared_variables
from common.tasks.traffic.task import TASK
from common.tasks.traffic.vocabulary import SensorVariables
from common.wire.messages import Metrics, TrainRequest


def join_sensors(sensors: Sequence[Sensor]) -> Tensors:
    """Concatenate the sensors; no window crosses from one sensor to the next."""
    offsets = np.cumsum([0, *(len(sensor.values) for sensor in sensors)])[:-1]
    starts = [sensor.train + offset for sensor, offset in zip(sensors, offsets, strict=True)]
    arrays: dict[str, list[NDArray[Any]]] = {
        "values": [sensor.values for sensor in sensors],
        "inputs": [sensor.inputs for sensor in sensors],
        "base": [sensor.base for sensor in sensors],
        "seen": [sensor.observed for sensor in sensors],
    }
    batch = {name: torch.from_numpy(np.concatenate(tables, dtype=np.float32)) for name, tables in arrays.items()}
    batch |= bounds_by_time(sensors, [(sensor.ranges.low, sensor.ranges.high) for sensor in sensors])
    if all(sensor.ridge.size for sensor in sensors):
        batch["ridge"] = join_ridges(sensors)
    return {**batch, "starts": torch.from_numpy(np.concatenate(starts).astype(np.int64))}


def join_ridges(sensors: Sequence[Sensor]) -> torch.Tensor:
    """Concatenate the ridge forecasts of the sensors' windows."""
    return torch.from_numpy(np.concatenate([sensor.ridge for sensor in sensors], dtype=np.float32))


def bounds_by_time(sensors: Sequence[Sensor], tables: Sequence[tuple[Floats, Floats]]) -> Tensors:
    """Return the bounds at every reading of every sensor, from its tables of bounds by row of the week."""
    low, high = zip(
        *((low[s.clock], high[s.clock]) for s, (low, high) in zip(sensors, tables, strict=True)), strict=True
    )
    bounds = {"low": low, "high": high}
    return {name: torch.from_numpy(np.concatenate(columns, dtype=np.float32)) for name, columns in bounds.items()}


def windows_in(readings: Tensors, first: Tensor, options: TrafficOptions) -> Tensors:
    """Return the histories and references of windows with first targets B, from readings of whole series."""
    past = first.unsqueeze(1) + torch.arange(-options.history, 0)
    base = readings["base"][first.unsqueeze(1) + torch.arange(options.horizon)]
    windows = {"past": readings["inputs"][past] - readings["base"][past], "base": base}
    return {**windows, "ridge": readings["ridge"][first]} if "ridge" in readings else windows


def windows_of(sensor: Sensor, first: Ints, options: TrafficOptions) -> Tensors:
    """Return the same of one sensor."""
    series = {"inputs": sensor.inputs, "base": sensor.base}
    readings = {name: torch.from_numpy(a.astype(np.float32)) for name, a in series.items()}
    ridge = {"ridge": torch.from_numpy(sensor.ridge[first].astype(np.float32))} if sensor.ridge.size else {}
    return {**windows_in(readings, torch.from_numpy(first), options), **ridge}


BLOCK_WINDOWS = 1024  # windows forecast together
PROPERTY_WINDOWS = 256  # about so many training windows, evenly spaced, for the property violation of a model


class TrafficLearner:
    """Learner of the traffic task: a client's sensors in one run; most clients have one."""

    task = TASK.name
    rows, recurrent = 0, True
    shared: tuple[str, ...] = ()

    def __init__(self, run: TaskRun[TrafficOptions, SensorVariables], dataset: Sensors) -> None:
        self.options, self.variables = run.options, run.vocabulary
        self.residual, self._has_noise = run.model == "default", run.privacy.unit != "none"
        self.module = shell(TASK, run)
        self._pair = compared_variables(self.options, self.variables) if self.options.property == "difference" else None
        self.sensors = [prepare(s, self.variables, self.options, residual=self.residual) for s in dataset.units]
        self._whole = join_sensors(self.sensors)
        self._with_ridge: dict[bool, list[Sensor]] = {}
        self.examples = len(self._whole["starts"])
        if not self.examples:
            warn_too_short(self.options)
        self.size = len(self._whole["values"])
        self._lessons = Lessons(self.sensors, self._forecast) if self.options.is_over_days() else None

    def batch(self, request: TrainRequest) -> Tensors:
        """Return all readings, profile, bounds, and first targets of the training windows.

        A property in the request is that of the cluster, φ_j, and replaces the client's own. A cold-start sensor uses its
        pooled property.
        """
        whole, sensors = self._whole, self._sensors_with(request.statics)
        if any(sensor.shared.size for sensor in sensors):
            whole = whole | {"ridge": join_ridges(sensors)}
        if "low" in request.shared:
            return whole | bounds_by_time(sensors, [(request.shared["low"], request.shared["high"])] * len(sensors))
        pooled = any(sensor.pooled for sensor in sensors)
        return whole | bounds_by_time(sensors, [(s.ranges.low, s.ranges.high) for s in sensors]) if pooled else whole

    def step_inputs(self, steps: int, generator: torch.Generator) -> Tensors:
        """Sample mini-batch window indices, steps × B, with replacement; a formula judges half of them."""
        if self._lessons:
            return self._lessons.step_inputs(steps, self.options.batch, generator)
        return {"rows": torch.randint(max(self.examples, 1), (steps, self.options.batch), generator=generator)}

    def step_targets(self, request: TrainRequest) -> StepTargets | None:
        """Return the function to the teacher's forecasts of one step under a formula; None under ranges."""
        return self._lessons.under(request.shared).step_targets if self._lessons else None

    def loss(self, params: Tensors, batch: Tensors, inputs: Tensors) -> Tensor:
        """Compute F_i = MSE(Y, Ŷ) + λ·L_p(φ_i, Ŷ) of a mini-batch.

        L_p is the distance to the closest satisfying forecast. Filled gaps do not count in the MSE.
        """
        first = batch["starts"][inputs["rows"]]
        forecast, target = self._forecast(params, batch, first), first.unsqueeze(1) + torch.arange(self.options.horizon)
        seen = batch["seen"][target]
        error = (seen * (forecast - batch["values"][target]).square()).sum() / seen.sum().clamp(min=1)
        lessons = self._lessons
        violated = lessons.loss(forecast, inputs) if lessons else self._violation(forecast, batch, target)
        return error + self.options.property_weight * violated

    def violation(self, model: Arrays) -> float:
        """Return L_p of the client's own property over training windows, in standard deviations."""
        if self._lessons:
            return self._lessons.violation(tensors(model), self._whole, PROPERTY_WINDOWS)
        first = self._property_windows()
        forecast = ask(self, PROPERTY, model, {}).output[: len(first)] if len(first) else torch.zeros(0)
        return float(self._violation(forecast, self._whole, first.unsqueeze(1) + torch.arange(self.options.horizon)))

    def _property_windows(self) -> Tensor:
        return self._whole["starts"][:: max(1, self.examples // PROPERTY_WINDOWS)]

    def property(self) -> Arrays:
        """Return the weakest property of the client's sensors and the number of `days` it is inferred from.

        Its bounds hold for all sensors with usable readings. Under noise `days` is left out; it would dominate the clipped
        vector. Under a formula it is empty; under a template, its parameters, without the structure under noise.
        """
        if self._lessons:
            return self._lessons.parameters(with_structure=not self._has_noise)
        observed = [sensor for sensor in self.sensors if sensor.usable.any()] or self.sensors
        weakest = reduce(lambda ranges, more: ranges.weaken(more.low, more.high), (s.ranges for s in observed))
        days = {} if self._has_noise else {"days": np.array([min(sensor.days for sensor in observed)])}
        return {**weakest.arrays(), **days}

    def doubt(self) -> str:
        """Return a remark if more than half of the past days violate the run's formula; else an empty text."""
        return find_doubt(self.sensors) if self.options.property == "formula" else ""

    def evaluate(self, model: Arrays, statics: Arrays, split: str) -> tuple[Metrics, Metrics]:
        """Return errors and satisfaction of forecasts before and after the teacher, in standard deviations."""
        pairs = zip(self._sensors_with(statics), self._made(model, statics, split), strict=True)
        return means_over_windows([row for sensor, made in pairs if (row := self._evaluate(sensor, split, made))])

    def baselines(self, split: str, statics: Arrays) -> tuple[Metrics, Metrics]:
        """Return metrics without a model: errors of baselines, satisfaction by the truth, property width."""
        sensors = self._sensors_with(baseline_statics(statics))
        rows = [baseline_metrics(sensor, split, self.options.horizon) for sensor in sensors]
        return means_over_windows([row for row in rows if row])

    def record_values(self, model: Arrays, statics: Arrays, split: str) -> list[Floats]:
        """Return the MSE of each sensor's forecasts in blocks of windows."""
        pairs = zip(self._sensors_with(statics), self._made(model, statics, split), strict=True)
        return [forecast_errors(s, split, made[len(made) - len(s.starts(split)) :]) for s, made in pairs]

    def baseline_values(self, statics: Arrays, split: str) -> dict[str, list[Floats]]:
        """Return the same of each sensor's own ridge regression, if the run has it, and weekly profile."""
        (ridge, usual), sensors = TASK.baselines, self._sensors_with(baseline_statics(statics))
        baselines = {name: OwnForecaster(self.options, self.variables, name == ridge) for name in (ridge, usual)}
        if not all(sensor.ridge.size for sensor in sensors):
            del baselines[ridge]
        return {
            name: [forecast_errors(s, split, baseline.forecasts({}, s, s.starts(split))) for s in sensors]
            for name, baseline in baselines.items()
        }

    def forecasts(self, model: Arrays, sensor: Sensor, first: Ints) -> Floats:
        """Return forecasts in standard deviations, N × P × D, of windows whose first targets are at `first`."""
        params, chunks = tensors(model), np.array_split(first, -(-len(first) // BLOCK_WINDOWS) or 1)
        with torch.no_grad():
            made = [self.answer(params, windows_of(sensor, chunk, self.options)) for chunk in chunks]
        return torch.cat(made).double().numpy()

    def questions(self, kind: str, statics: Arrays) -> Tensors:
        """Return the windows whose forecasts a split's metrics need; for a property, some training windows."""
        if kind == PROPERTY:
            first = self._property_windows()
            return windows_in(self._whole, first, self.options) if len(first) else {}
        sensors = self._sensors_with(statics)
        if sum(self._sizes(sensors, kind)) > BLOCK_WINDOWS:
            return {}  # their histories would take more memory than a stack saves time
        windows = [windows_of(s, evaluated(s, kind), self.options) for s in sensors if len(s.starts(kind))]
        return {name: torch.cat([each[name] for each in windows]) for name in windows[0]} if windows else {}

    def answer(self, params: Tensors, questions: Tensors) -> Tensor:
        """Return the forecasts of windows, N × P × D."""
        forecast: Tensor = functional_call(self.module, params, (questions["past"],)) + questions["base"]
        return forecast + questions["ridge"] if "ridge" in questions else forecast

    def _sizes(self, sensors: Sequence[Sensor], split: str) -> list[int]:
        return [len(evaluated(s, split)) if len(s.starts(split)) else 0 for s in sensors]

    def _made(self, model: Arrays, statics: Arrays, split: str) -> list[Floats]:
        """Return each sensor's forecasts of the windows `evaluated`, N × P × D."""
        sensors = self._sensors_with(statics)
        if sum(sizes := self._sizes(sensors, split)) > BLOCK_WINDOWS:
            found = [evaluated(s, split) if size else s.starts(split) for s, size in zip(sensors, sizes, strict=True)]
            return [self.forecasts(model, s, first) for s, first in zip(sensors, found, strict=True)]
        shape = -1, self.options.horizon, self.sensors[0].values.shape[1]
        made = ask(self, split, model, statics).output[: sum(sizes)].reshape(shape).double().numpy()
        return np.split(made, np.cumsum(sizes)[:-1])

    def statistics(self, solved: Arrays) -> Arrays:
        """Return what `shared_ridge` needs next: autocovariances, then errors on validation data by choice.

        Raises:
            WireError: What is solved is not of this run.
        """
        shared_ridge.check(solved, self.variables, self.options, noised=self._has_noise)
        sums = reduce(add, (compute_sums(sensor, self.options) for sensor in self.sensors))
        part = shared_ridge.lag_statistics(solved, sums)
        if LAGS not in solved:
            return part
        mine = to_sums(part)
        others = {**solved, **sub({name: solved[name] for name in mine}, mine)} if includes(solved, mine) else solved
        weights = linear_forecast(others, self.options.history, self.options.horizon)
        errors = [choice_errors(sensor, weights, self.options) for sensor in self.sensors]
        return shared_ridge.error_statistics([error for error in errors if error is not None])

    def _forecast(self, params: Tensors, batch: Tensors, first: Tensor) -> Tensor:
        """Forecast B × P × D for windows with first targets B."""
        return self.answer(params, windows_in(batch, first, self.options))

    def _violation(self, forecast: Tensor, batch: Tensors, target: Tensor) -> Tensor:
        return violation(forecast, batch["low"][target], batch["high"][target], self._pair)

    def _sensors_with(self, statics: Arrays) -> list[Sensor]:
        """Return the sensors with federated ridge (constant after the sums) and pooled cold-start properties."""
        sensors = self.sensors
        if LAGS in statics:
            key = shared_ridge.CHOICE in statics
            if key not in self._with_ridge:
                self._with_ridge[key] = [with_federated_ridge(sensor, statics, self.options) for sensor in sensors]
            sensors = self._with_ridge[key]
        return [with_pooled_property(sensor, statics, self.options) for sensor in sensors]

    def _evaluate(self, sensor: Sensor, split: str, made: Floats) -> Metrics:
        first = sensor.starts(split)
        if not len(first):
            return {}
        return {
            **forecast_metrics(sensor, made[len(made) - len(first) :], first, self.options.property_weight),
            "coverage80": split_coverage(sensor, split, made),
            "windows": float(len(first)),
        }
