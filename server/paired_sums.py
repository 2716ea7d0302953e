"""Sums over units of the differences between two models on the same held-out data; pure."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

import numpy as np

from common.arrays import Array

MAX_UNITS, MAX_SUM = 1e9, 1e15
"""Largest accepted number of units of one client, and magnitude of its sums."""

MIN_LIMITED, MAX_RATIO = 5, 10.0
"""Clients from which the units of one are limited, and the limit as a multiple of the median."""


@dataclass(frozen=True)
class PairedSums:
    """Sums over units of differences d.

    Args:
        units: Number n of units.
        total: Σd.
        squares: Σd².
        wins: Number of units that do better by the first model.
        losses: Number of units that do worse.
    """

    units: int = 0
    total: float = 0.0
    squares: float = 0.0
    wins: int = 0
    losses: int = 0

    def __add__(self, other: "PairedSums") -> "PairedSums":
        """Return the sums over the units of both."""
        return PairedSums(
            self.units + other.units,
            self.total + other.total,
            self.squares + other.squares,
            self.wins + other.wins,
            self.losses + other.losses,
        )

    @property
    def mean(self) -> float | None:
        """Mean of d; None without units."""
        return self.total / self.units if self.units else None

    @property
    def standard_error(self) -> float | None:
        """Standard error of the mean of d; None below two units."""
        if self.units < 2:
            return None
        variance = max(self.squares - self.total**2 / self.units, 0.0) / (self.units - 1)
        return math.sqrt(variance / self.units)


def pool_sums(reports: Iterable[Array]) -> PairedSums:
    """Return the sums over clients; reports that no client can have measured are left out.

    From five clients with units on, one with over ten times their median number counts as one with ten times it.
    """
    plausible = list(filter(is_plausible, reports))
    units = [float(report[0]) for report in plausible if report[0]]
    limit = MAX_RATIO * median(units) if len(units) >= MIN_LIMITED else math.inf
    pooled = PairedSums()
    for report in plausible:
        n, total, squares, wins, losses = (report * min(1.0, limit / max(report[0], 1.0))).tolist()
        pooled += PairedSums(round(n), total, squares, round(wins), round(losses))
    return pooled


def is_plausible(report: Array) -> bool:
    """Return True if the report has five finite sums that some units can have."""
    if report.shape != (5,) or report.dtype.kind != "f" or not np.isfinite(report).all():
        return False
    n, total, squares, wins, losses = (float(value) for value in report)
    if any(count < 0 or count != int(count) for count in (n, wins, losses)) or not wins + losses <= n <= MAX_UNITS:
        return False
    return abs(total) <= MAX_SUM and squares <= MAX_SUM and squares * n >= total**2 * (1 - 1e-9)
