"""Formula of a sensor in training: judged windows, and targets of local steps.

Targets are the closest forecasts that satisfy the formula.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from client.tasks.traffic.metrics import judged
from client.tasks.traffic.sensor import Sensor
from client.training.stacks import Tensors, move
from common.arrays import Arrays, Flags, Floats, Ints
from common.logic.semantics import robustness, satisfied
from common.tasks.traffic.model import judged_violation
from common.tasks.traffic.properties import NAMES, STRUCTURE, TEMPLATE, check_parameters, is_alike, pool_parameters


@dataclass(frozen=True)
class JudgedWindows:
    """Complete windows, without overlap, in order of time.

    Args:
        first: First reading of each window, N.
        satisfied: True for each window that satisfies the formula, N.
        robustness: Distance of each window to violation, in the units of the data; negative if it violates, N.
    """

    first: Ints
    satisfied: Flags
    robustness: Floats

    @property
    def worst(self) -> int:
        """Index of the window of least robustness."""
        return int(self.robustness.argmin())

    @property
    def share(self) -> float:
        """Share of the windows that satisfy the formula; NaN without any."""
        return float(self.satisfied.mean()) if len(self.satisfied) else float("nan")


def judge_windows(sensor: Sensor, begin: int, end: int) -> JudgedWindows:
    """Judge the complete windows of readings from `begin` to before `end` by the formula."""
    phi = sensor.stated
    if phi is None or phi.formula is None:
        return JudgedWindows(np.zeros(0, np.int64), np.zeros(0, bool), np.zeros(0))
    first = np.arange(begin, end - phi.steps + 1)
    first = first[phi.judged(sensor.slots[first])] if phi.at_midnight else first[:: phi.steps]
    places = first[:, None] + np.arange(phi.steps)
    first = first[sensor.observed[places].all(axis=(1, 2))]
    places = first[:, None] + np.arange(phi.steps)
    readings, scaled = (torch.from_numpy(of[places]) for of in (sensor.series.values, sensor.values))
    if phi.written is None and phi.scaled is not None:  # bounds of inference are exact in standard deviations
        holds = satisfied(phi.scaled, scaled, phi.names)
    else:
        holds = satisfied(phi.formula, readings, phi.names)
    return JudgedWindows(first, holds.numpy(), robustness(phi.formula, readings, phi.names).numpy())


def find_doubt(sensors: Iterable[Sensor]) -> str:
    """Return a remark if more than half of the past days violate the run's formula; else an empty text."""
    satisfied_days = np.concatenate([judge_windows(sensor, 0, sensor.past).satisfied for sensor in sensors])
    if not len(satisfied_days) or satisfied_days.mean() >= 0.5:
        return ""
    return f"only {satisfied_days.mean():.0%} of {len(satisfied_days)} past days satisfy the formula of this run"


Forecast = Callable[[Tensors, Tensors, Tensor], Tensor]
"""(parameters, batch, first targets B) -> forecasts in standard deviations, B × P × D."""

TAUGHT, JUDGED = "taught", "judged"
"""Names of step inputs: closest satisfying forecasts B × P × D, and 1 for each judged window, B."""


class Lessons:
    """Training windows of a client whose forecasts a formula judges.

    Args:
        sensors: Sensors of the client, each with its formula.
        forecast: Forecast of the client's model.
    """

    def __init__(self, sensors: Sequence[Sensor], forecast: Forecast) -> None:
        self._formulas, self._forecast = [sensor.stated for sensor in sensors], forecast
        self.arrays = pool_parameters([phi.arrays for phi in self._formulas if phi and phi.arrays])
        self._owners = torch.from_numpy(np.repeat(np.arange(len(sensors)), [len(s.train) for s in sensors]))
        self._judged = torch.from_numpy(np.concatenate([judged(sensor, sensor.train) for sensor in sensors]))
        self.windows = self._judged.nonzero().squeeze(-1)

    def under(self, cluster: Arrays) -> "Lessons":
        """Return the lessons under a cluster's property φ_j; unchanged if φ_j is of another template.

        Raises:
            WireError: φ_j is not a property of a template.
        """
        if not cluster or not self.arrays:
            return self
        steps = next(phi.steps for phi in self._formulas if phi)
        check_parameters(cluster, steps, with_structure=TEMPLATE in cluster)
        arrays = {**self.arrays, **{name: a for name, a in cluster.items() if name in NAMES}}
        if not is_alike(arrays, self.arrays):
            return self
        lessons = copy(self)
        lessons._formulas = [phi and phi.under(arrays) for phi in self._formulas]
        return lessons

    def parameters(self, *, with_structure: bool) -> Arrays:
        """Return the arrays of the client's property; empty under a formula that a user wrote."""
        left_out = () if with_structure else STRUCTURE
        return {name: a for name, a in self.arrays.items() if name not in left_out}

    def step_inputs(self, steps: int, size: int, generator: torch.Generator) -> Tensors:
        """Sample windows `rows`, steps × B: the first half among judged ones, the others among all."""
        count = size // 2 if len(self.windows) else 0
        rows = torch.randint(max(len(self._judged), 1), (steps, size), generator=generator)
        picked = torch.randint(max(len(self.windows), 1), (steps, count), generator=generator)
        return {"rows": torch.cat([self.windows[picked], rows[:, count:]], 1) if count else rows}

    def step_targets(self, params: Tensors, batch: Tensors, inputs: Tensors) -> Tensors:
        """Return the step inputs `TAUGHT` and `JUDGED` of the windows of one step."""
        return self.targets(params, batch, inputs["rows"])

    def targets(self, params: Tensors, batch: Tensors, rows: Tensor) -> Tensors:
        """Return the step inputs `TAUGHT` and `JUDGED` of windows, B."""
        with torch.no_grad():
            forecast = self._forecast(params, batch, batch["starts"][rows])
        self._judged, self._owners = move((self._judged, self._owners), rows.device)  # at the first step alone
        taught, counts, owners = forecast.clone(), self._judged[rows], self._owners[rows]
        for k, phi in enumerate(self._formulas):
            mine = counts & (owners == k)
            if phi and phi.teacher and mine.any():
                taught[mine] = phi.teacher(forecast[mine])
        return {TAUGHT: taught, JUDGED: counts.to(forecast.dtype)}

    def loss(self, forecast: Tensor, inputs: Tensors) -> Tensor:
        """Return L_p of the forecasts of one step, a scalar."""
        return judged_violation(forecast, inputs[TAUGHT], inputs[JUDGED])

    def violation(self, params: Tensors, batch: Tensors, most: int) -> float:
        """Return L_p over about `most` judged training windows, evenly spaced."""
        rows = self.windows[:: max(1, len(self.windows) // most)]
        with torch.no_grad():
            forecast = self._forecast(params, batch, batch["starts"][rows])
        return float(self.loss(forecast, self.targets(params, batch, rows)))
