"""Property of a sensor that is a formula over a whole forecast: written, inferred or mined."""

import logging
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from client.tasks.traffic.data.series import Scaler
from common.arrays import Arrays, Flags, Floats, Ints
from common.errors import ConfigError
from common.logic.formula import Formula, normalized, rescaled
from common.logic.parser import CAP, is_plannable, read_formula
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.vocabulary import DAY, SensorVariables

if TYPE_CHECKING:
    from common.logic.projection import Teacher

log = logging.getLogger("fedloom.client")

MIN_DAYS = 14
"""Smallest number of complete judged windows from which a property is inferred."""


@dataclass(frozen=True, eq=False)
class Stated:
    """Formula φ over the P steps of a forecast.

    Args:
        scaled: Formula in standard deviations of one sensor; None if there were too few days to infer one.
        scaler: Scaler of the sensor.
        names: Names of the D variables.
        steps: Number P of steps of a forecast.
        at_midnight: True if reading 0 is that at midnight; forecasts that begin at other times are not judged.
        day: Number of readings of a day.
        arrays: Inferred parameters as arrays of a message; empty for a formula that a user wrote.
        written: The text's formula in the data's units; None if the formula was inferred.
    """

    scaled: "Formula | None"
    scaler: Scaler
    names: tuple[str, ...]
    steps: int
    at_midnight: bool
    day: int
    arrays: Arrays
    written: "Formula | None" = None

    @property
    def formula(self) -> "Formula | None":
        """Formula in the data's units; None without one."""
        if self.written is not None or self.scaled is None:
            return self.written
        mean, std = _by_name(self.names, -self.scaler.mean / self.scaler.std), _by_name(self.names, 1 / self.scaler.std)
        return normalized(rescaled(self.scaled, mean, std))

    @cached_property
    def teacher(self) -> "Teacher | None":
        """Projection to the closest satisfying forecast, in standard deviations; None without a formula."""
        from common.logic.projection import Teacher  # it imports torch

        return Teacher.of(self.scaled, self.names, self.steps, cap=CAP) if self.scaled is not None else None

    def under(self, arrays: Arrays) -> "Stated":
        """Return this property with the parameters of a cluster; unchanged if no formula follows."""
        from client.tasks.traffic.template_property import TemplateProperty  # it imports torch

        scaled = TemplateProperty(arrays).formula(self.names) if self.scaled is not None else None
        return replace(self, scaled=scaled, arrays=arrays) if scaled is not None and is_plannable(scaled) else self

    def judged(self, slots: Ints) -> Flags:
        """Return True for each forecast that φ judges, by the slot of the week of its first reading, N."""
        counts = slots % self.day == 0 if self.at_midnight else np.ones(slots.shape, bool)
        return counts if self.scaled is not None else np.zeros(slots.shape, bool)

    def correct(self, traces: Floats) -> Floats:
        """Return the closest satisfying forecasts, N × P × D in standard deviations."""
        import torch

        if self.teacher is None:
            return traces
        return np.asarray(self.teacher(torch.from_numpy(np.ascontiguousarray(traces, np.float64))).numpy())


def state_formula(
    options: TrafficOptions, variables: SensorVariables, scaler: Scaler, values: Floats, slots: Ints, usable: Flags
) -> Stated | None:
    """Return the formula of the run, or the inferred one, for a sensor; None under bounds by the clock.

    Args:
        options: Options of the task.
        variables: Vocabulary of the run.
        scaler: Scaler of the sensor.
        values: Scaled readings, T × D.
        slots: Slot of the week of each reading, T.
        usable: True for readings that a property may be inferred from, T.

    Raises:
        ConfigError: The formula names another variable, or the inferred one has too many alternatives.
    """
    if not options.is_over_days():
        return None
    names, day = variables.variables, DAY // variables.step_seconds
    at_midnight = options.anchors_midnight(variables.step_seconds)
    blank = Stated(None, scaler, names, options.horizon, at_midnight, day, {})
    if options.property == "formula":
        phi = read_formula(options.formula, options.horizon, names)
        return replace(
            blank, scaled=rescaled(phi, _by_name(names, scaler.mean), _by_name(names, scaler.std)), written=phi
        )
    traces = past_days(blank, values, slots, usable)
    if len(traces) < MIN_DAYS:
        log.warning(
            "no day to judge: %s complete days in training, %s are needed for a property", len(traces), MIN_DAYS
        )
        return blank
    from client.tasks.traffic.template_property import infer_property  # it imports torch

    found = infer_property(traces, variables, options)
    scaled = found.formula(names) if found else None
    if scaled is not None and not is_plannable(scaled):
        raise ConfigError(f"property={options.property} has too many alternatives; lower tasks.traffic.window-width")
    return replace(blank, scaled=scaled, arrays=found.arrays) if found else blank


def past_days(phi: Stated, values: Floats, slots: Ints, usable: Flags) -> Floats:
    """Return the complete windows of usable readings that a formula judges, S × P × D, without overlap."""
    first = np.arange(len(values) - phi.steps + 1)
    first = first[slots[first] % phi.day == 0] if phi.at_midnight else first[:: phi.steps]
    places = first[:, None] + np.arange(phi.steps)
    return np.asarray(values[places[usable[places].all(axis=1)]])


def _by_name(names: tuple[str, ...], values: Floats) -> dict[str, float]:
    return dict(zip(names, map(float, values), strict=True))
