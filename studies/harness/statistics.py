"""Statistics of differences paired by seed: corrected intervals, Holm's correction and verdicts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from statistics import fmean, stdev
from typing import Literal

from scipy.special import stdtr, stdtrit

Verdict = Literal["holds", "fails", "level", "open", "not-testable"]

SEEDS = 5
"""Number of seeds below which every claim is open."""

MOST_SEEDS = 100
"""Largest number of seeds that is considered."""

LEVEL = 0.05
"""Error of a family of claims; also of each of the two one-sided tests of `level`."""


@dataclass(frozen=True)
class Paired:
    """Differences of two rows, seed by seed, positive where the first row is better.

    The interval is that of a paired t, with the correction of Nadeau and Bengio (2003) for splits that are drawn again
    for each seed: s² · (1/n + test/train), n − 1 degrees of freedom.

    Args:
        differences: One a seed.
        overlap: Size of the test part over that of the training part; 0 if the test part is the same for all seeds.
    """

    differences: Sequence[float]
    overlap: float = 0.0

    @property
    def mean(self) -> float:
        """Mean difference."""
        return fmean(self.differences)

    @property
    def error(self) -> float:
        """Corrected standard error; infinite with a single seed."""
        n = len(self.differences)
        return stdev(self.differences) * sqrt(1 / n + self.overlap) if n > 1 else inf

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return both ends of the interval of the mean."""
        if self.error == inf:
            return -inf, inf
        half = float(stdtrit(len(self.differences) - 1, (1 + confidence) / 2)) * self.error
        return self.mean - half, self.mean + half

    def p_value(self, at: float = 0.0) -> float:
        """Return the two-sided p of the hypothesis that the mean is `at`."""
        if self.error == inf or self.mean == at:
            return 1.0
        if self.error == 0:
            return 0.0
        return 2 * float(stdtr(len(self.differences) - 1, -abs(self.mean - at) / self.error))


def holm(p_values: Iterable[float]) -> list[float]:
    """Return the p values after Holm's correction, in the same order."""
    values = list(p_values)
    corrected, largest = [0.0] * len(values), 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        largest = max(largest, min(1.0, (len(values) - rank) * values[place]))
        corrected[place] = largest
    return corrected


def verdict_of(found: Paired, corrected: float, smallest: float, *, no_worse: bool = False) -> Verdict:
    """Return the verdict on `the first row is better`.

    Args:
        found: The differences.
        corrected: p of no difference, after Holm's correction over the claims of the paper. With `no_worse`, p of a
            difference of −`smallest`.
        smallest: Smallest effect of interest.
        no_worse: True if the claim is that the first row is no worse, by less than the smallest effect.
    """
    if len(found.differences) < SEEDS:
        return "open"
    low, high = found.interval(1 - 2 * LEVEL)
    if corrected <= LEVEL and found.mean > (-smallest if no_worse else 0) and (no_worse or found.mean >= smallest):
        return "holds"
    if not no_worse and -smallest < low and high < smallest:
        return "level"
    return "fails" if high < (-smallest if no_worse else smallest) else "open"


def seeds_needed(found: Paired, corrected: float, smallest: float, *, no_worse: bool = False) -> int | None:
    """Return the number of seeds that would give a verdict; None if more than `MOST_SEEDS`.

    Mean, deviation and the factor of Holm's correction are taken to stay. The arguments are those of `verdict_of`.
    """
    at = -smallest if no_worse else 0.0
    factor = corrected / found.p_value(at) if found.p_value(at) else 1.0
    mean, deviation = found.mean, stdev(found.differences)
    for n in range(len(found.differences), MOST_SEEDS + 1):
        half = n // 2
        apart = deviation * sqrt((n - 1) / (2 * half))
        more = Paired([mean + apart] * half + [mean - apart] * half + [mean] * (n % 2), found.overlap)
        if verdict_of(more, min(1.0, factor * more.p_value(at)), smallest, no_worse=no_worse) != "open":
            return n
    return None


def combined(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on a claim of several comparisons: the worst of them, and `open` before `level`."""
    found = set(verdicts)
    order: tuple[Verdict, ...] = ("fails", "open", "level", "holds")
    return next((verdict for verdict in order if verdict in found), "open")
