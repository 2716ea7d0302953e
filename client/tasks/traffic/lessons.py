"""Targets of local steps under a formula: the closest satisfying forecasts."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from client.stacked_tensors import Tensors
from client.tasks.traffic.judgement import judged
from client.tasks.traffic.prepare import Sensor
from common.tasks.traffic.property_loss import judged_violation

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
        self._owners = torch.from_numpy(np.repeat(np.arange(len(sensors)), [len(s.train) for s in sensors]))
        self._judged = torch.from_numpy(np.concatenate([judged(sensor, sensor.train) for sensor in sensors]))
        self.windows = self._judged.nonzero().squeeze(-1)

    def step_rows(self, steps: int, size: int, generator: torch.Generator) -> Tensor:
        """Sample windows, steps × B: the first half among judged ones, the others among all."""
        count = size // 2 if len(self.windows) else 0
        rows = torch.randint(max(len(self._judged), 1), (steps, size), generator=generator)
        picked = torch.randint(max(len(self.windows), 1), (steps, count), generator=generator)
        return torch.cat([self.windows[picked], rows[:, count:]], 1) if count else rows

    def targets(self, params: Tensors, batch: Tensors, rows: Tensor) -> Tensors:
        """Return the step inputs `TAUGHT` and `JUDGED` of windows, B."""
        with torch.no_grad():
            forecast = self._forecast(params, batch, batch["starts"][rows])
        taught, counts, owners = forecast.clone(), self._judged[rows], self._owners[rows]
        for k, phi in enumerate(self._formulas):
            mine = counts & (owners == k)
            if phi and mine.any():
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
