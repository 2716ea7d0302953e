"""Traffic learner: windows of series as tensors, objective F = MSE + λ·L_p (Eq 2)."""

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call

from client.tasks.learner import StepTargets, means_over_windows, shell
from client.tasks.traffic.data.series import Sensors
from client.tasks.traffic.formula_targets import Lessons, find_doubt
from client.tasks.traffic.metrics import baseline_metrics, forecast_errors, forecast_metrics, split_coverage
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
from client.training.stacks import Tensors
from common.arrays import Arrays, Floats, Ints, add, scale, sub
from common.models import tensors
from common.tasks.spec import TaskRun
from common.tasks.traffic import shared_ridge
from common.tasks.traffic.counts import LAGS, SUMS, linear_forecast, to_sums
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


BLOCK_WINDOWS = 1024  # windows forecast together
PROPERTY_WINDOWS = 256  # about so many training windows, evenly spaced, for the property violation of a model


class TrafficLearner:
    """Learner of the traffic task: a client's sensors in one run; most clients have one.

    Args:
        run: View of the run's configuration.
        dataset: Sensors of the client.
    """

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
        first = self._whole["starts"][:: max(1, self.examples // PROPERTY_WINDOWS)]
        with torch.no_grad():
            forecast = self._forecast(tensors(model), self._whole, first)
        return float(self._violation(forecast, self._whole, first.unsqueeze(1) + torch.arange(self.options.horizon)))

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
        rows = [self._evaluate(model, sensor, split) for sensor in self._sensors_with(statics)]
        return means_over_windows([row for row in rows if row])

    def baselines(self, split: str, statics: Arrays) -> tuple[Metrics, Metrics]:
        """Return metrics without a model: errors of baselines, satisfaction by the truth, property width."""
        sensors = self._sensors_with(baseline_statics(statics))
        rows = [baseline_metrics(sensor, split, self.options.horizon) for sensor in sensors]
        return means_over_windows([row for row in rows if row])

    def record_values(self, model: Arrays, statics: Arrays, split: str) -> list[Floats]:
        """Return the MSE of each sensor's forecasts in blocks of windows."""
        sensors, horizon = self._sensors_with(statics), self.options.horizon
        return [forecast_errors(s, split, horizon, partial(self.forecasts, model, s)) for s in sensors]

    def baseline_values(self, statics: Arrays, split: str) -> dict[str, list[Floats]]:
        """Return the same of each sensor's own ridge regression, if the run has it, and weekly profile."""
        (ridge, usual), sensors = TASK.baselines, self._sensors_with(baseline_statics(statics))
        horizon = self.options.horizon
        baselines = {name: OwnForecaster(self.options, self.variables, name == ridge) for name in (ridge, usual)}
        if not all(sensor.ridge.size for sensor in sensors):
            del baselines[ridge]
        return {
            name: [forecast_errors(s, split, horizon, partial(baseline.forecasts, {}, s)) for s in sensors]
            for name, baseline in baselines.items()
        }

    def forecasts(self, model: Arrays, sensor: Sensor, first: Ints) -> Floats:
        """Return forecasts in standard deviations, N × P × D, of windows whose first targets are at `first`."""
        whole, params = join_sensors([sensor]), tensors(model)
        if not len(first):
            return np.zeros((0, self.options.horizon, sensor.values.shape[1]))
        chunks = np.array_split(first, -(-len(first) // BLOCK_WINDOWS))
        with torch.no_grad():
            made = [self._forecast(params, whole, torch.from_numpy(chunk)) for chunk in chunks]
        return torch.cat(made).double().numpy()

    def counts(self) -> Arrays:
        """Return the sums over lags of all sensors; zeros under the paper's model, which does not use them."""
        sums = reduce(add, (compute_sums(sensor, self.options) for sensor in self.sensors))
        return sums if self.residual else scale(sums, 0.0)

    def statistics(self, solved: Arrays) -> Arrays:
        """Return what `shared_ridge` needs next: autocovariances, then errors on validation data by choice.

        Raises:
            WireError: What is solved is not of this run.
        """
        shared_ridge.check(solved, self.variables, self.options, noised=self._has_noise)
        part = shared_ridge.lag_statistics(solved, self.counts())
        if LAGS not in solved:
            return part
        others = self.without_own(solved, to_sums(part))
        weights = linear_forecast(others, self.options.history, self.options.horizon)
        errors = [choice_errors(sensor, weights, self.options) for sensor in self.sensors]
        return shared_ridge.error_statistics([error for error in errors if error is not None])

    def without_own(self, statics: Arrays, sent: Arrays) -> Arrays:
        """Return the sums without this client's part; unchanged if its reply came too late to be summed."""
        total = {name: a for name, a in statics.items() if name in SUMS}
        return statics | sub(total, sent) if total and sent and includes(total, sent) else statics

    def _forecast(self, params: Tensors, batch: Tensors, first: Tensor) -> Tensor:
        """Forecast B × P × D for windows with first targets B."""
        past = first.unsqueeze(1) + torch.arange(-self.options.history, 0)
        future = first.unsqueeze(1) + torch.arange(self.options.horizon)
        residual = functional_call(self.module, params, (batch["inputs"][past] - batch["base"][past],))
        forecast: Tensor = residual + batch["base"][future]
        return forecast + batch["ridge"][first] if "ridge" in batch else forecast

    def _violation(self, forecast: Tensor, batch: Tensors, target: Tensor) -> Tensor:
        return violation(forecast, batch["low"][target], batch["high"][target], self._pair)

    def _sensors_with(self, statics: Arrays) -> list[Sensor]:
        """Return the sensors with federated ridge (constant after the sums) and pooled cold-start properties."""
        sensors = self.sensors
        if set(SUMS) <= set(statics):
            key = shared_ridge.CHOICE in statics
            if key not in self._with_ridge:
                self._with_ridge[key] = [with_federated_ridge(sensor, statics, self.options) for sensor in sensors]
            sensors = self._with_ridge[key]
        return [with_pooled_property(sensor, statics, self.options) for sensor in sensors]

    def _evaluate(self, model: Arrays, sensor: Sensor, split: str) -> Metrics:
        first = sensor.starts(split)
        if not len(first):
            return {}
        forecast = self.forecasts(model, sensor, first)
        return {
            **forecast_metrics(sensor, forecast, first, self.options.property_weight),
            "coverage80": split_coverage(partial(self.forecasts, model, sensor), sensor, split, forecast),
            "windows": float(len(first)),
        }
