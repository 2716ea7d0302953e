"""Windows of a sensor's readings that its formula judges, and how well they satisfy it."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch

from client.tasks.traffic.prepare import Sensor
from common.arrays import Flags, Floats, Ints
from common.logic.semantics import robustness, satisfied


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
