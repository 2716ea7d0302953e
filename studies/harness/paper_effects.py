"""Effects that the papers report, and ours beside them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Literal

from studies.harness.contrast import Contrast
from studies.harness.results import Results
from studies.harness.statistics import LEVEL, SEEDS, Paired

Agreement = Literal["reproduced", "in part", "smaller", "larger", "refuted", "open", "not-testable"]

FACTOR = 2.0
"""Sizes of two effects agree if their ratio is at most this."""

POINTS = {"rho_point"}
"""Metrics whose effect is a difference; that of others is a share of the second row's value."""


@dataclass(frozen=True)
class Reported:
    """An effect that a paper reports, and the comparisons that stand for it.

    Args:
        source: Place in the paper.
        contrasts: The paper's comparison on each data set that is here, all of one metric. Ours is their mean.
        effect: The paper's effect, positive where the first row is better; None if it states the direction alone.
    """

    source: str
    contrasts: Sequence[Contrast]
    effect: float | None = None

    @property
    def where(self) -> str:
        """Data sets and metric, as the table shows them."""
        first = self.contrasts[0]
        metric = f"{first.metric} against {first.other}" if first.other else first.metric
        return f"{', '.join(one.part for one in self.contrasts)}: {metric}"

    def paired(self, results: Mapping[str, Results]) -> Paired | None:
        """Return our effects by seed, means over the sets; None if a row is missing or they share no seed."""
        each = [self._effects(one, results) for one in self.contrasts]
        if not (seeds := sorted(set.intersection(*(set(one) for one in each)))):
            return None
        return Paired([fmean(one[seed] for one in each) for seed in seeds], max(one.overlap for one in self.contrasts))

    @staticmethod
    def _effects(one: Contrast, results: Mapping[str, Results]) -> dict[int, float]:
        """Return seed -> effect on one set: a share of the second row's mean, or a difference."""
        pairs = one.values(results)
        if not pairs:
            return {}
        unit = 1.0 if one.metric in POINTS else abs(fmean(second for _, second in pairs.values()))
        return {seed: one.sign * (first - second) / unit for seed, (first, second) in pairs.items()}


@dataclass(frozen=True)
class Compared:
    """An effect of a paper with ours.

    Args:
        reported: The paper's.
        paired: Ours, by seed; None if it was not measured.
    """

    reported: Reported
    paired: Paired | None

    @cached_property
    def interval(self) -> tuple[float, float]:
        """Both ends of the 90 % interval of our effect; NaN without one."""
        return self.paired.interval(1 - 2 * LEVEL) if self.paired else (float("nan"), float("nan"))

    @property
    def measured(self) -> bool:
        """True with enough seeds."""
        return self.paired is not None and len(self.paired.differences) >= SEEDS

    @property
    def agreement(self) -> Agreement:
        """Agreement of sign and size with the paper's."""
        if self.paired is None or not self.measured:
            return "open"
        low, high = self.interval
        effect = self.reported.effect
        if effect is None:
            return self._direction(low, high)
        if low <= effect <= high or 1 / FACTOR <= self.paired.mean / effect <= FACTOR:
            return "reproduced"
        if effect < 0:
            low, high, effect = -high, -low, -effect
        if high < 0:
            return "refuted"
        if low > effect:
            return "larger"
        return "smaller" if low > 0 or high < effect / FACTOR else "open"

    def _direction(self, low: float, high: float) -> Agreement:
        """Return whether the first row is better, or no worse by the smallest effect if that is the claim."""
        first = self.reported.contrasts[0]
        least = -first.smallest if first.no_worse else 0.0
        return "reproduced" if low > least else "refuted" if high < least else "open"


def agreement_of(found: Iterable[Compared]) -> Agreement:
    """Return the agreement of all measured effects if they share one, else `in part`; `open` without any."""
    shared = {one.agreement for one in found if one.measured} or {"open"}
    return shared.pop() if len(shared) == 1 else "in part"
