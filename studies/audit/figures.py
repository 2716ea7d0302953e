"""Figures of the audit, from its stored results."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median

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
from studies.harness.row import Metrics


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
        return sorted(
            self._of(SOUND_CASES), key=lambda pair: (list(WAYS).index(pair[0].way), pair[0].rounds, pair[0].epsilon)
        )

    @property
    def faulty(self) -> list[tuple[Case, Metrics]]:
        """Audits of code with a fault."""
        return list(self._of(FAULTY_CASES))

    @property
    def one_runs(self) -> list[tuple[OneRun, list[Metrics]]]:
        """Audits by one training, all seeds."""
        found = ((run, self.results.rows.get(run.key)) for run in ONE_RUNS)
        return [(run, [trial.metrics for trial in row.trials.values()]) for run, row in found if row and row.trials]

    @property
    def uploads(self) -> list[tuple[Upload, float, float]]:
        """Attacks on uploads, with the mean precision over seeds of the attack and of popularity."""
        found = ((upload, self.results.rows.get(upload.key)) for upload in UPLOADS)
        means = [(u, row.values("precision"), row.values("popularity")) for u, row in found if row and row.trials]
        return [(upload, fmean(read.values()), fmean(popular.values())) for upload, read, popular in means]

    @property
    def members(self) -> list[tuple[Upload, float, float]]:
        """Guesses of membership, with the mean AUC and the mean TPR over seeds."""
        found = ((upload, self.results.rows.get(upload.key)) for upload in MEMBERS)
        means = [(u, row.values("auc"), row.values("tpr")) for u, row in found if row and row.trials]
        return [(upload, fmean(areas.values()), fmean(rates.values())) for upload, areas, rates in means]

    @property
    def opened(self) -> list[tuple[Opened, Metrics]]:
        """Attacks on opened sums, with means over seeds."""
        found = ((case, self.results.rows.get(case.key)) for case in OPENED)
        names = ("auc", "tpr", "precision", "popularity")
        return [(case, {name: row.mean(name) for name in names}) for case, row in found if row and row.trials]

    def _of(self, cases: Sequence[Case]) -> Iterator[tuple[Case, Metrics]]:
        for case in cases:
            row = self.results.rows.get(case.key)
            if row and row.trials:
                yield case, row.trials[0].metrics


def share(metrics: Metrics) -> float:
    """Return the audited loss as a share of the claimed."""
    return metrics["audited"] / metrics["claimed"]


def audited(trials: Sequence[Metrics]) -> float:
    """Return the median audited ε of trainings."""
    return median(metrics["audited_epsilon"] for metrics in trials)
