"""Runs that the papers' claims still need, with their expected time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import fmean, median

from common.text import count
from studies.harness.contrast import Contrast, Finding
from studies.harness.results import Results
from studies.harness.row import RowKey
from studies.harness.statistics import MOST_SEEDS, SEEDS


@dataclass(frozen=True)
class MissingRuns:
    """Seeds of a row that a claim names and that are not stored.

    Args:
        study: Name of the study.
        key: The row.
        runs: Number of missing seeds.
        seconds: Expected time of one run: the mean of the row, or the median of the study for a new row;
            0 if none was stored.
    """

    study: str
    key: RowKey
    runs: int
    seconds: float

    def __str__(self) -> str:
        time = f", {self.runs * self.seconds:.0f} s" if self.seconds else ""
        return f"{self.study}: {self.key}, {count(self.runs, 'run')}{time}"


def missing_runs(contrasts: Iterable[Contrast], results: Mapping[str, Results]) -> list[MissingRuns]:
    """Return the missing runs in the order of the comparisons, each row once."""
    named = ((one.study, key) for one in contrasts for key in one.keys)
    return [
        MissingRuns(study, key, SEEDS - done, _seconds(results[study], key))
        for study, key in dict.fromkeys(named)
        if (done := _seeds(results[study], key)) < SEEDS
    ]


def plan_lines(missing: Sequence[MissingRuns], budget: float) -> Iterator[str]:
    """Yield a line for each row until the hours are spent, then the sum; nothing if no run is missing."""
    hours = list(accumulate(one.runs * one.seconds / 3600 for one in missing))
    shown = sum(spent <= budget for spent in hours)
    yield from map(str, missing[:shown])
    if missing:
        yield f"{shown} of {count(len(missing), 'row')}, {hours[shown - 1] if shown else 0:.1f} hours of one core"


def price_of_seeds(findings: Sequence[Finding], missing: Sequence[MissingRuns]) -> str:
    """Return what more seeds of open comparisons would cost; empty if none would be run.

    Args:
        findings: Comparisons of a claim.
        missing: Runs that they lack.
    """
    waiting = [one for one in findings if one.waits]
    decided = [minutes for one in waiting if (minutes := one.minutes) is not None]
    parts = []
    if missing:
        minutes = sum(one.runs * one.seconds for one in missing) / 60
        parts.append(f"about {_minutes(minutes)} of one core for {SEEDS} of each row")
    if decided:
        parts.append(f"about {_minutes(sum(decided))} to decide {count(len(decided), 'further comparison')}")
    if rest := len(waiting) - len(decided):
        parts.append(f"{MOST_SEEDS} would not decide {count(rest, 'comparison')}")
    return f"more seeds: {', '.join(parts)}" if parts else ""


def _minutes(minutes: float) -> str:
    return count(max(1, round(minutes)), "minute")


def _seeds(results: Results, key: RowKey) -> int:
    row = results.rows.get(key)
    return sum(seed < SEEDS for seed in row.trials) if row else 0


def _seconds(results: Results, key: RowKey) -> float:
    row = results.rows.get(key)
    if row and row.about.seconds:
        return fmean(row.about.seconds.values())
    means = [fmean(one.about.seconds.values()) for one in results.rows.values() if one.about.seconds]
    return median(means) if means else 0.0
