"""Figures of the audit, from its stored results."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from studies.audit.cases import (
    FAULTY_CASES,
    MEMBERS,
    ONE_RUNS,
    OPENED,
    SOUND_CASES,
    UPLOADS,
    WAYS,
    Case,
    OneRun,
    Opened,
    Upload,
)
from studies.harness.results import Results
from studies.harness.row import Metrics, Row

CaseT = TypeVar("CaseT", Case, OneRun, Upload, Opened)


@dataclass(frozen=True)
class Figures:
    """Figures of the study.

    Args:
        results: Stored results.
    """

    results: Results

    @property
    def sound(self) -> list[tuple[Case, Metrics]]:
        """Audits of the code as it is, by way and ε."""
        found = [(case, row.trials[0].metrics) for case, row in self._rows(SOUND_CASES)]
        return sorted(found, key=lambda pair: (list(WAYS).index(pair[0].way), pair[0].rounds, pair[0].epsilon))

    @property
    def faulty(self) -> list[tuple[Case, Metrics]]:
        """Audits of code with a fault."""
        return [(case, row.trials[0].metrics) for case, row in self._rows(FAULTY_CASES)]

    @property
    def one_runs(self) -> list[tuple[OneRun, list[Metrics]]]:
        """Audits by one training, all seeds."""
        return [(run, [trial.metrics for trial in row.trials.values()]) for run, row in self._rows(ONE_RUNS)]

    @property
    def uploads(self) -> list[tuple[Upload, float, float]]:
        """Attacks on uploads, with the mean precision over seeds of the attack and of popularity."""
        return [(upload, row.mean("precision"), row.mean("popularity")) for upload, row in self._rows(UPLOADS)]

    @property
    def members(self) -> list[tuple[Upload, float, float]]:
        """Guesses of membership, with the mean AUC and the mean TPR over seeds."""
        return [(upload, row.mean("auc"), row.mean("tpr")) for upload, row in self._rows(MEMBERS)]

    @property
    def opened(self) -> list[tuple[Opened, Metrics]]:
        """Attacks on opened sums, with means over seeds."""
        names = ("auc", "tpr", "precision", "popularity")
        return [(case, {name: row.mean(name) for name in names}) for case, row in self._rows(OPENED)]

    def _rows(self, cases: Sequence[CaseT]) -> Iterator[tuple[CaseT, Row]]:
        """Iterate over the cases that have trials."""
        for case in cases:
            row = self.results.rows.get(case.key)
            if row and row.trials:
                yield case, row


def share(metrics: Metrics) -> float:
    """Return the audited loss as a share of the claimed."""
    return metrics["audited"] / metrics["claimed"]


def audited(trials: Sequence[Metrics]) -> float:
    """Return the median audited ε of trainings."""
    return median(metrics["audited_epsilon"] for metrics in trials)
