"""Property of a sensor that is a formula of signal temporal logic over a whole forecast."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from client.tasks.traffic.data.split import Scaler
from common.arrays import Flags, Floats, Ints
from common.logic.diagnosis import CAP, read_formula
from common.logic.formula import Formula
from common.logic.rescale import rescaled
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.vocabulary import DAY, SensorVariables

if TYPE_CHECKING:
    from common.logic.teacher import Teacher


@dataclass(frozen=True)
class Stated:
    """Formula φ over the P steps of a forecast.

    Args:
        formula: Formula in the data's units.
        scaled: The same formula in standard deviations of one sensor.
        names: Names of the D variables.
        steps: Number P of steps of a forecast.
        at_midnight: True if reading 0 is that at midnight; forecasts that begin at other times are not judged.
        day: Number of readings of a day.
    """

    formula: Formula
    scaled: Formula
    names: tuple[str, ...]
    steps: int
    at_midnight: bool
    day: int

    @cached_property
    def teacher(self) -> "Teacher":
        """Projection to the closest satisfying forecast, in standard deviations."""
        from common.logic.teacher import Teacher  # it imports torch

        return Teacher.of(self.scaled, self.names, self.steps, cap=CAP)

    def judged(self, slots: Ints) -> Flags:
        """Return True for each forecast that φ judges, by the slot of the week of its first reading, N."""
        return slots % self.day == 0 if self.at_midnight else np.ones(slots.shape, bool)

    def correct(self, traces: Floats) -> Floats:
        """Return the closest satisfying forecasts, N × P × D in standard deviations."""
        import torch

        return np.asarray(self.teacher(torch.from_numpy(np.ascontiguousarray(traces, np.float64))).numpy())


def state_formula(options: TrafficOptions, variables: SensorVariables, scaler: Scaler) -> Stated | None:
    """Return the formula of the run for a sensor with that scaler; None if the run has none.

    Raises:
        ConfigError: The formula speaks of another variable.
    """
    if options.property != "formula":
        return None
    names, step = variables.variables, variables.step_seconds
    phi = read_formula(options.formula, options.horizon, names)
    mean, std = (dict(zip(names, map(float, each), strict=True)) for each in (scaler.mean, scaler.std))
    at_midnight = options.anchors_midnight(step)
    return Stated(phi, rescaled(phi, mean, std), names, options.horizon, at_midnight, DAY // step)
