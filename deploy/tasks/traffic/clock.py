"""Numbers, clock times and stretches of the day, as a person reads them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.tasks.traffic.ranges import WORKING_DAYS
from common.tasks.traffic.vocabulary import HOUR

Floats = NDArray[np.float64]

KINDS = (("on working days", 0), ("at weekends", WORKING_DAYS))
"""In words, and the first such day of a week."""


@dataclass(frozen=True)
class Stretch:
    """A part of some days.

    Args:
        days: In words.
        first: Reading after midnight that it begins with.
        last: The last one, included.
        step: Seconds between readings.
    """

    days: str
    first: int
    last: int
    step: int

    @property
    def clock(self) -> tuple[str, str]:
        """From, to: `08:00`, `10:00`."""
        return _clock(self.first * self.step), _clock((self.last + 1) * self.step)

    @property
    def when(self) -> str:
        """`on working days between 08:00 and 10:00`."""
        start, end = self.clock
        return self.days if (start, end) == ("00:00", "24:00") else f"{self.days} between {start} and {end}"


def stretches(table: Floats, step: int, tolerance: float) -> Iterator[tuple[Stretch, Floats]]:
    """Stretches in which no bound differs from another by more than the tolerance, each with its bounds, K × rows.

    Args:
        table: K bounds by the row of the week, K × W.
        step: Seconds between readings; rows are of an hour at least.
        tolerance: In the units of the bounds.
    """
    day, row = table.shape[1] // 7, max(step, HOUR)
    parts = [(days, table[:, first * day : (first + 1) * day]) for days, first in KINDS]
    if np.array_equal(parts[0][1], parts[1][1]):
        parts = [("every day", parts[0][1])]
    for days, part in parts:
        for first, last in _alike(part, tolerance):
            yield Stretch(days, first * row // step, (last + 1) * row // step - 1, step), part[:, first : last + 1]


def number(value: float, digits: int) -> str:
    """`1,904`; never a zero with a sign; empty for what is no number."""
    return "" if math.isnan(value) else f"{round(value, digits) + 0.0:,.{digits}f}"


def digits_for(span: float) -> int:
    """Digits after the point that tell a thousandth of the span."""
    return max(0, 2 - math.floor(math.log10(span))) if span > 0 else 2


def percent(share: float) -> str:
    """`91 %`."""
    return f"{100 * share:.0f} %"


def _alike(table: Floats, tolerance: float) -> Iterator[tuple[int, int]]:
    """Runs, first and last, in which no bound differs from another by more than the tolerance; table K × rows."""
    first = 0
    for k in range(1, table.shape[1] + 1):
        whole = table[:, first : k + 1]
        if k == table.shape[1] or np.ptp(whole, axis=1).max() > tolerance:
            yield first, k - 1
            first = k


def _clock(seconds: int) -> str:
    parts = [seconds // HOUR, seconds % HOUR // 60, *([seconds % 60] if seconds % 60 else [])]
    return ":".join(f"{part:02d}" for part in parts)
