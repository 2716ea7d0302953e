"""Property of the difference of two variables by hour (template 4, algorithms.md §3.2-3.4)."""

from dataclasses import dataclass

import numpy as np

from common.arrays import Arrays, Floats, Ints
from common.logic.strict import STRICT
from common.tasks.traffic.ranges import Ranges


@dataclass(frozen=True)
class Differences(Ranges):
    """Difference property ⋀_w □_[w,w] (x₁ − x₂ > low_w).

    Each variable is in its own standard deviations; `low` is W × 1 and `high` infinite.

    Args:
        pair: Indices of x₁ and x₂ among the variables.
    """

    pair: tuple[int, int] = (0, 1)

    @property
    def width(self) -> float:
        """NaN, since a difference has a lower bound only."""
        return float("nan")

    def bounded_values(self, traces: Floats) -> Floats:
        """Compute x₁ − x₂, … × 1."""
        first, second = self.pair
        return traces[..., first, None] - traces[..., second, None]

    def excess(self, traces: Floats, rows: Ints) -> Floats:
        """Return the distances to the closest satisfying trace, … × D.

        Each of the two variables has half of the missing difference. The total does not depend on this split.
        """
        return np.abs(self._moves(traces, rows))

    def project(self, traces: Floats, rows: Ints) -> Floats:
        """Return the closest satisfying traces in L1 and L2.

        Each of the two variables moves by half of the missing difference.
        """
        return traces + self._moves(traces, rows)

    def limits(self, traces: Floats, rows: Ints) -> tuple[Floats, Floats]:
        """Return NaN bounds, since single variables have none."""
        nan = np.full_like(traces, np.nan)
        return nan, nan

    def arrays(self) -> Arrays:
        """Return the arrays of a message; both names hold the lower bound."""
        low = self.low.astype(np.float32)
        return {"low": low, "high": low}

    def _moves(self, traces: Floats, rows: Ints) -> Floats:
        gap, moves = self.bounded_values(traces), np.zeros_like(traces)
        missing = np.where(gap > self.low[rows], 0.0, self.low[rows] + STRICT - gap)[..., 0] / 2
        moves[..., self.pair[0]], moves[..., self.pair[1]] = missing, -missing
        return moves


def to_differences(ranges: Ranges, pair: tuple[int, int]) -> Differences:
    """Convert ranges of x₁ − x₂ to template 4: their lower side as a strict bound."""
    return Differences(ranges.low - STRICT, np.full_like(ranges.low, np.inf), pair)
