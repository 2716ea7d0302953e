"""Figures of the study of lies, from its stored results: end of the run, quality, and who was named."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from studies.harness.results import Results
from studies.harness.row import Metrics, Row
from studies.lies.cases import HONEST, SETTINGS, Case, all_cases
from studies.lies.effect_cases import PREFIX


class Outcome(NamedTuple):
    """One run with a liar.

    Args:
        case: The case.
        metrics: Its metrics; empty if the run failed.
        harm: Loss of quality against the run without the liar, as a multiple of the spread over seeds; negative if better.
        rounds: Number of rounds of the run without the liar.
    """

    case: Case
    metrics: Metrics
    harm: float
    rounds: float

    @property
    def finished(self) -> bool:
        """True if the run had all its rounds."""
        return self.metrics.get("rounds") == self.rounds

    @property
    def within(self) -> bool:
        """True if the model is as good as without the liar, within the spread over seeds."""
        return self.harm <= 1

    @property
    def named(self) -> bool:
        """True if a round line names the liar."""
        return self.metrics.get("named", 0) > 0

    @property
    def cell(self) -> str:
        """Text in the table."""
        if not self.finished:
            return "**ends**"
        harm = f"{max(0.0, self.harm):.1f}"
        return (harm if self.within else f"**{harm}**") + ("" if self.named else ", **not named**")


@dataclass(frozen=True)
class Figures:
    """Figures of the study.

    Args:
        results: Stored results.
    """

    results: Results

    def spread(self, task: str, method: str) -> float:
        """Return the range of the quality over seeds without the liar; NaN without two seeds."""
        values = [*self._quality(Case(task, method)).values()]
        return max(values) - min(values) if len(values) > 1 else math.nan

    def of(self, case: Case) -> list[Outcome]:
        """Return the runs of a case, one a seed."""
        row, honest = self.results.row(case.key), self.results.row(Case(case.task, case.method).key)
        spread, sign = self.spread(case.task, case.method), 1 if SETTINGS[case.task].higher else -1
        failed = [Outcome(case, {}, math.inf, math.nan) for _ in row.about.failures]
        return failed + [
            Outcome(
                case,
                trial.metrics,
                _ratio(sign * (honest.trials[seed].metrics["quality"] - trial.metrics["quality"]), spread),
                honest.trials[seed].metrics["rounds"],
            )
            for seed, trial in sorted(row.trials.items())
            if seed in honest.trials
        ]

    def all(self) -> Iterator[Outcome]:
        """Yield all runs with a liar."""
        for case in all_cases():
            if case.lie != HONEST:
                yield from self.of(case)

    def cell(self, case: Case) -> str:
        """Return the text of the worst run of a case; empty without one."""
        found = self.of(case)
        return max(found, key=lambda one: (not one.finished, not one.named, one.harm)).cell if found else ""

    def honest_named(self) -> int:
        """Return the number of honest clients that a round line names, in runs without a liar too."""
        return round(self._total("mistaken"))

    def stained(self) -> int:
        """Return the number of files with a terminal escape."""
        return round(self._total("stained"))

    @property
    def runs(self) -> int:
        """Number of runs, with and without a liar."""
        return sum(len(row.trials) + len(row.about.failures) for row in self._rows())

    def _rows(self) -> Iterator[Row]:
        """Yield the rows of this part of the study."""
        yield from (row for key, row in self.results.rows.items() if not key.set.startswith(PREFIX))

    def _total(self, metric: str) -> float:
        return sum(sum(row.values(metric).values()) for row in self._rows())

    def _quality(self, case: Case) -> dict[int, float]:
        return self.results.row(case.key).values("quality")


def _ratio(loss: float, spread: float) -> float:
    return loss / spread if spread > 0 else 0.0 if loss <= 0 else math.inf
