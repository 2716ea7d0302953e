"""Text of numbers, clock times and stretches of the day."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.tasks.traffic.ranges import WORKING_DAYS
from common.tasks.traffic.vocabulary import HOUR

Floats = NDArray[np.float64]

KINDS = (("on working days", 0), ("at weekends", WORKING_DAYS))
"""Text of a kind of days, and the first such day of the week."""


@dataclass(frozen=True)
class Stretch:
    """Part of the days of one kind.

    Args:
        days: Text of the kind of days.
        first: Index of its first reading after midnight.
        last: Index of its last reading.
        step: Seconds between readings.
    """

    days: str
    first: int
    last: int
    step: int

    @property
    def clock(self) -> tuple[str, str]:
        """Start and end: `08:00`, `10:00`."""
        return _clock(self.first * self.step), _clock((self.last + 1) * self.step)

    @property
    def when(self) -> str:
        """Text: `on working days between 08:00 and 10:00`."""
        start, end = self.clock
        return self.days if (start, end) == ("00:00", "24:00") else f"{self.days} between {start} and {end}"


def stretches(table: Floats, step: int, tolerance: float) -> Iterator[tuple[Stretch, Floats]]:
    """Iterate over stretches with nearly constant bounds, each with its bounds, K × rows.

    Within a stretch no bound changes by more than the tolerance.

    Args:
        table: Bounds by the row of the week, K × W.
        step: Seconds between readings; a row lasts at least an hour.
        tolerance: Maximum change, in the units of the bounds.
    """
    day, row = table.shape[1] // 7, max(step, HOUR)
    parts = [(days, table[:, first * day : (first + 1) * day]) for days, first in KINDS]
    if np.array_equal(parts[0][1], parts[1][1]):
        parts = [("every day", parts[0][1])]
    for days, part in parts:
        for first, last in _constant_runs(part, tolerance):
            yield Stretch(days, first * row // step, (last + 1) * row // step - 1, step), part[:, first : last + 1]


def number(value: float, digits: int) -> str:
    """Return a number as text, `1,904`, without negative zero; empty for NaN."""
    return "" if math.isnan(value) else f"{round(value, digits) + 0.0:,.{digits}f}"


def digits_for(span: float) -> int:
    """Return the number of decimals that resolve a thousandth of the span."""
    return max(0, 2 - math.floor(math.log10(span))) if span > 0 else 2


def percent(share: float) -> str:
    """Return a share as text, `91 %`."""
    return f"{100 * share:.0f} %"


def _constant_runs(table: Floats, tolerance: float) -> Iterator[tuple[int, int]]:
    """Iterate over first and last row of stretches whose bounds change by at most the tolerance."""
    first = 0
    for k in range(1, table.shape[1] + 1):
        rows = table[:, first : k + 1]
        if k == table.shape[1] or np.ptp(rows, axis=1).max() > tolerance:
            yield first, k - 1
            first = k


def _clock(seconds: int) -> str:
    parts = [seconds // HOUR, seconds % HOUR // 60, *([seconds % 60] if seconds % 60 else [])]
    return ":".join(f"{part:02d}" for part in parts)
