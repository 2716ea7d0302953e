"""Figures of the study of privacy noise, from its stored results."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from studies.harness.results import Results
from studies.harness.row import Row
from studies.privacy.cases import EPSILONS, NO_NOISE, Protection, Setting

LARGE = 100
"""Value from which digits behind the point say nothing."""


def number(value: float, sign: str = "") -> str:
    """Return a value with three digits behind the point; a large one without."""
    return f"{value:{sign},.{3 if abs(value) < LARGE else 0}f}".replace("-", "−")


@dataclass(frozen=True)
class Point:
    """Quality at one ε.

    Args:
        epsilon: ε; infinite without noise.
        mean: Mean over seeds of the metric.
        deviation: Its standard deviation over seeds.
        gain: Mean over seeds of the metric's gain over the floor of the same run; positive is better.
        seeds: Number of seeds.
        used: Mean of the metric of what clients use; None if it was not measured.
        used_gain: Mean of its gain over the floor.
    """

    epsilon: float
    mean: float
    deviation: float
    gain: float
    seeds: int
    used: float | None = None
    used_gain: float = 0.0


@dataclass(frozen=True)
class Figures:
    """Figures of one task.

    Args:
        results: Stored results.
        setting: The task's runs.
    """

    results: Results
    setting: Setting

    @property
    def no_noise(self) -> Point | None:
        """Quality without noise."""
        return self._point(NO_NOISE, float("inf"))

    @property
    def floor(self) -> float:
        """Return the mean of the baseline that sends nothing, over the seeds without noise."""
        row = self.results.rows[self.setting.key(NO_NOISE)]
        return fmean(row.values(self.setting.floor).values())

    @property
    def noised(self) -> dict[Protection, list[Point]]:
        """Quality at each ε that was run, by protection."""
        return {protection: list(self._points(protection)) for protection in self.setting.protections}

    def below(self) -> dict[Protection, list[Point]]:
        """Return the points at which the default model is below its floor, by protection."""
        return self._where(lambda one: one.gain < -self.setting.smallest)

    def used_below(self) -> dict[Protection, list[Point]]:
        """Return the points at which what clients use is below the floor, by protection."""
        return self._where(lambda one: one.used_gain < -self.setting.smallest)

    def unmeasured(self) -> dict[Protection, list[Point]]:
        """Return the points at which what clients use was not measured, by protection."""
        return self._where(lambda one: one.used is None)

    def _where(self, holds: Callable[[Point], bool]) -> dict[Protection, list[Point]]:
        found = {p: [one for one in points if holds(one)] for p, points in self.noised.items()}
        return {protection: points for protection, points in found.items() if points}

    def _points(self, protection: Protection) -> Iterator[Point]:
        for epsilon in EPSILONS:
            if point := self._point(self.setting.row(protection, epsilon), epsilon):
                yield point

    def _point(self, name: str, epsilon: float) -> Point | None:
        row = self.results.rows.get(self.setting.key(name))
        if row is None or not row.trials:
            return None
        values, gains = list(row.values(self.setting.metric).values()), self._gains(row, self.setting.metric)
        deviation = stdev(values) if len(values) > 1 else 0.0
        point = Point(epsilon, fmean(values), deviation, fmean(gains), len(values))
        used = row.values(self.setting.used)
        if len(used) < len(values) or name == NO_NOISE:
            return point
        return replace(point, used=fmean(used.values()), used_gain=fmean(self._gains(row, self.setting.used)))

    def _gains(self, row: Row, metric: str) -> list[float]:
        sign = 1 if self.setting.higher else -1
        floors = row.values(self.setting.floor)
        return [sign * (value - floors[seed]) for seed, value in row.values(metric).items()]
