"""By how much one variable stays above another, by the clock (template 4, algorithms.md §3.2-3.4)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.arrays import Arrays
from common.logic.margin import STRICT
from common.tasks.traffic.ranges import Floats, Ranges


@dataclass(frozen=True)
class Differences(Ranges):
    """⋀_w □_[w,w] (x₁ − x₂ > low_w), each variable in its own standard deviations; `low` is W × 1 and `high` infinite.

    Args:
        pair: Places of x₁ and x₂ among the variables.
    """

    pair: tuple[int, int] = (0, 1)

    @property
    def width(self) -> float:
        """Bounded on one side only."""
        return float("nan")

    def bounded(self, traces: Floats) -> Floats:
        """x₁ − x₂, … × 1."""
        first, second = self.pair
        return traces[..., first, None] - traces[..., second, None]

    def excess(self, traces: Floats, rows: NDArray[np.int64]) -> Floats:
        """What is missing of the difference costs as much however it is split: half at each of the two variables, … × D."""
        return np.abs(self._moves(traces, rows))

    def corrected(self, traces: Floats, rows: NDArray[np.int64]) -> Floats:
        """Both variables give way by half of what is missing, which is also the closest in L2."""
        return traces + self._moves(traces, rows)

    def limits(self, traces: Floats, rows: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """No variable has bounds by itself."""
        none = np.full_like(traces, np.nan)
        return none, none

    def arrays(self) -> Arrays:
        """As they travel: the side that there is, for both."""
        low = self.low.astype(np.float32)
        return {"low": low, "high": low}

    def _moves(self, traces: Floats, rows: NDArray[np.int64]) -> Floats:
        gap, moves = self.bounded(traces), np.zeros_like(traces)
        missing = np.where(gap > self.low[rows], 0.0, self.low[rows] + STRICT - gap)[..., 0] / 2
        moves[..., self.pair[0]], moves[..., self.pair[1]] = missing, -missing
        return moves


def apart(ranges: Ranges, pair: tuple[int, int]) -> Differences:
    """The lower side of ranges of x₁ − x₂, as template 4 with its strict bound."""
    return Differences(ranges.low - STRICT, np.full_like(ranges.low, np.inf), pair)
