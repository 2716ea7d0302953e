"""The traffic task on a client: windows of its series, F = MSE + λ·L_p (Eq 2), the property its past obeys."""

from functools import reduce

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call

from client.stacked_tensors import Tensors
from client.tasks.learner import means_over_windows, shell
from client.tasks.traffic.cold_start import adopted
from client.tasks.traffic.data.series import Sensors
from client.tasks.traffic.federated_ridge import includes, own_sums, with_federated_ridge
from client.tasks.traffic.prepare import Sensor, prepare, warn_too_short
from client.tasks.traffic.tensors import by_time, handed_over, joined, lines
from common.arrays import Arrays, add, scale, sub
from common.models import tensors
from common.tasks.spec import TaskRun
from common.tasks.traffic.counts import SUMS
from common.tasks.traffic.options import TrafficOptions, compared
from common.tasks.traffic.property_loss import violation
from common.tasks.traffic.ranges import obedience
from common.tasks.traffic.task import TASK
from common.tasks.traffic.vocabulary import SensorVariables
from common.wire.messages import Metrics, TrainRequest

FORECAST_AT_ONCE = 1024
"""Windows forecast together."""

JUDGED = 256
"""Training windows, evenly spaced, on which models are compared."""

Floats = NDArray[np.float64]


class TrafficLearner:
    """A client's sensors in one run; most clients have one.

    Args:
        run: The run.
        dataset: The client's sensors.
    """

    task = TASK.name
    rows = 0
    shared: tuple[str, ...] = ()

    def __init__(self, run: TaskRun[TrafficOptions, SensorVariables], dataset: Sensors) -> None:
        self.options, self.measures = run.options, run.vocabulary
        self.residual, self._hidden = run.model == "default", run.privacy.unit != "none"
        self.module = shell(TASK, run)
        self._pair = compared(self.options, self.measures) if self.options.property == "difference" else None
        self.sensors = [prepare(one, self.measures, self.options, residual=self.residual) for one in dataset.units]
        self._whole = joined(self.sensors)
        self._taught: list[Sensor] = []
        self.examples = len(self._whole["starts"])
        if not self.examples:
            warn_too_short(self.options)
        self.size = len(self._whole["values"])

    def batch(self, request: TrainRequest) -> Tensors:
        """All readings, their profile and bounds, and the first targets of the training windows.

        A property in the request is the cluster's, φ_j, and takes the place of the client's own; a newcomer's own gives way
        to the one that it adopts.
        """
        whole, sensors = self._whole, self._informed(request.statics)
        if any(sensor.shared.size for sensor in sensors):
            whole = whole | {"line": lines(sensors)}
        if "low" in request.shared:
            return whole | by_time(sensors, [(request.shared["low"], request.shared["high"])] * len(sensors))
        pooled = any(sensor.pooled for sensor in sensors)
        return whole | by_time(sensors, [(s.ranges.low, s.ranges.high) for s in sensors]) if pooled else whole

    def step_inputs(self, steps: int, generator: torch.Generator) -> Tensors:
        """Which windows each step trains on, steps × B, drawn with replacement."""
        shape = steps, self.options.batch
        return {"rows": torch.randint(max(self.examples, 1), shape, generator=generator)}

    def loss(self, params: Tensors, batch: Tensors, noise: Tensors) -> Tensor:
        """F_i = MSE(Y, Ŷ) + λ·L_p(φ_i, Ŷ), L_p the distance to the closest forecast that obeys; filled gaps do not count."""
        first = batch["starts"][noise["rows"]]
        forecast, target = self._forecast(params, batch, first), first.unsqueeze(1) + torch.arange(self.options.horizon)
        seen = batch["seen"][target]
        error = (seen * (forecast - batch["values"][target]).square()).sum() / seen.sum().clamp(min=1)
        return error + self.options.property_weight * self._violation(forecast, batch, target)

    def violation(self, model: Arrays) -> float:
        """L_p of the client's own property over training windows, in standard deviations."""
        first = self._whole["starts"][:: max(1, self.examples // JUDGED)]
        with torch.no_grad():
            forecast = self._forecast(tensors(model), self._whole, first)
        return float(self._violation(forecast, self._whole, first.unsqueeze(1) + torch.arange(self.options.horizon)))

    def property(self) -> Arrays:
        """The weakest of the client's sensors' properties: the bounds that hold for all of them, and from how many `days`.

        A sensor without a reading to learn from bounds nothing, and is left out where there are others. The number of days
        would drown the bounds in a vector that is clipped, so under noise it is left out.
        """
        read = [sensor for sensor in self.sensors if sensor.known.any()] or self.sensors
        first, *others = (sensor.ranges for sensor in read)
        weakest = reduce(lambda ranges, other: ranges.weaker(other.low, other.high), others, first)
        days = {} if self._hidden else {"days": np.array([min(sensor.days for sensor in read)])}
        return {**weakest.arrays(), **days}

    def windows(self, windows: int) -> Arrays:
        """Windows of the training part, evenly spaced, in clear; see `common.tasks.traffic.shared_windows`."""
        return handed_over(self.sensors, self._whole, self.options, windows).arrays()

    def evaluate(self, model: Arrays, statics: Arrays, split: str) -> tuple[Metrics, Metrics]:
        """Errors and obedience of forecasts before and after the teacher, over the held-out windows; standardised."""
        rows = [self._measured(model, sensor, sensor.starts(split)) for sensor in self._informed(statics)]
        return means_over_windows([row for row in rows if row])

    def baselines(self, split: str, statics: Arrays) -> tuple[Metrics, Metrics]:
        """What holds whatever the model: the lines' errors, whether the truth obeys, and how wide the property is."""
        rows = []
        for sensor in self._informed(statics):
            first = sensor.starts(split)
            if len(first):
                truth, places = sensor.targets(first, self.options.horizon)
                whole = sensor.observed[places].all(axis=(1, 2))  # only days seen in full can be said to obey
                excess = sensor.ranges.excess(truth[whole], sensor.clock[places[whole]])
                row = {f"truth_{name}": share for name, share in obedience(excess).items()} if whole.any() else {}
                usual = sensor.profile[places]
                row |= {"profile_mse": sensor.error(usual, places)}
                row |= {"ridge_mse": sensor.error(usual + sensor.line[first], places)} if sensor.line.size else {}
                row |= {"last_week_mse": sensor.last_week_error(places), "property_width": sensor.ranges.width}
                rows.append({**row, "windows": float(len(first))})
        return means_over_windows(rows)

    def forecasts(self, model: Arrays, sensor: Sensor, first: NDArray[np.int64]) -> Floats:
        """Forecasts in standard deviations, N × P × D, of windows whose first targets are at `first`."""
        whole, params = joined([sensor]), tensors(model)
        if not len(first):
            return np.zeros((0, self.options.horizon, sensor.values.shape[1]))
        with torch.no_grad():
            parts = [
                self._forecast(params, whole, torch.from_numpy(chunk))
                for chunk in np.array_split(first, -(-len(first) // FORECAST_AT_ONCE))
            ]
        return torch.cat(parts).double().numpy()

    def counts(self) -> Arrays:
        """Sums over lags, of all sensors; zeros under the paper's model, which has no use for them."""
        sums = reduce(add, (own_sums(sensor, self.options) for sensor in self.sensors))
        return sums if self.residual else scale(sums, 0.0)

    def without_own(self, statics: Arrays, sent: Arrays) -> Arrays:
        """The sums without its own part, if that is in them: an answer that came too late is not."""
        total = {name: a for name, a in statics.items() if name in SUMS}
        return statics | sub(total, sent) if total and sent and includes(total, sent) else statics

    def _forecast(self, params: Tensors, batch: Tensors, first: Tensor) -> Tensor:
        """B × P × D from first targets, B."""
        past = first.unsqueeze(1) + torch.arange(-self.options.history, 0)
        to_come = first.unsqueeze(1) + torch.arange(self.options.horizon)
        departure = functional_call(self.module, params, (batch["values"][past] - batch["base"][past],))
        forecast: Tensor = departure + batch["base"][to_come]
        return forecast + batch["line"][first] if "line" in batch else forecast

    def _violation(self, forecast: Tensor, batch: Tensors, target: Tensor) -> Tensor:
        return violation(forecast, batch["low"][target], batch["high"][target], self._pair)

    def _informed(self, statics: Arrays) -> list[Sensor]:
        """The sensors with everybody's line, which is the same in all rounds, and a newcomer's pooled property."""
        sensors = self.sensors
        if set(SUMS) <= set(statics):
            sensors = self._taught = self._taught or [
                with_federated_ridge(sensor, statics, self.options) for sensor in sensors
            ]
        return [adopted(sensor, statics, self.options) for sensor in sensors]

    def _measured(self, model: Arrays, sensor: Sensor, first: NDArray[np.int64]) -> Metrics:
        if not len(first):
            return {}
        _, places = sensor.targets(first, self.options.horizon)
        forecast, clock = self.forecasts(model, sensor, first), sensor.clock[places]
        corrected = sensor.ranges.corrected(forecast, clock)
        excess = sensor.ranges.excess(forecast, clock)
        error = sensor.error(forecast, places)
        teacher = {f"teacher_{k}": share for k, share in obedience(sensor.ranges.excess(corrected, clock)).items()}
        return {
            "loss": error + self.options.property_weight * float(excess.mean()),
            "mse": error,
            **obedience(excess),
            "teacher_mse": sensor.error(corrected, places),
            **teacher,
            "windows": float(len(first)),
        }
