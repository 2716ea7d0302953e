"""Contrasts: the comparisons of stored rows that decide a claim of a paper."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

from studies.harness.results import Results
from studies.harness.row import RowKey
from studies.harness.statistics import MOST_SEEDS, SEEDS, Paired, Verdict, seeds_needed, verdict_of

HIT_RATES = ("filtered_hr5", "filtered_hr10", "filtered_hr20", "filtered_hr40")
"""Hit rates among valid rules, by the length of the list."""

HIGHER = {
    *("auc", "hr20", "catalogue_hr20", "mrr20", "ndcg20", "rho_point", "teacher_rho_point", "f1"),
    *HIT_RATES,
}
"""Metrics of which larger values are better."""

SMALLEST: Mapping[str, Mapping[str, float]] = {
    "rules": {"loss": 0.005, "auc": 0.003, "mr0": 0.1, "hr20": 0.01, "rise": 0.01, **dict.fromkeys(HIT_RATES, 0.01)},
    "sessions": {"hr20": 0.005, "mrr20": 0.005, "rate_spread": 0.1, "rate_width": 0.1, "largest_fall": 0.01},
    "traffic": {"mse": 0.02, "teacher_mse": 0.02, "rho_point": 0.005, "cluster_mse": 0.02},
    "ratings": {"rmse": 0.001},
    "markets": {"mrr20": 0.01, "ndcg20": 0.01},
}
"""Study -> metric -> smallest effect of interest, fixed before the runs."""

RELATIVE = {"mse", "teacher_mse", "cluster_mse"}
"""Metrics whose differences are shares of the second row's mean."""

OVERLAP = {
    "A": 0.25,
    "B": 0.25,
    "twins": 0.25,
    "gowalla": 0.25,
    "ml": 0.25,
    "ft": 0.25,
    "xmarket": 1 / 9,
    "online-retail": 1 / 9,
}
"""Data set -> size of the test over the training part, where every seed draws its own split."""


@dataclass(frozen=True)
class Contrast:
    """Two rows of a study on one metric.

    Args:
        study: Name of the study.
        part: Data set and protocol, as `set/protocol`.
        first: Row that the claim says is better.
        second: Row that it is compared with.
        metric: Metric of both.
        other: Metric of the second row, if another.
        no_worse: True if the claim is that the first row is no worse.
        clients: Clients whose mean counts; empty for the row's own mean over clients.
    """

    study: str
    part: str
    first: str
    second: str
    metric: str
    other: str = ""
    no_worse: bool = False
    clients: Collection[str] = ()

    @property
    def keys(self) -> tuple[RowKey, RowKey]:
        """Keys of both rows."""
        set_, protocol = self.part.split("/")
        return RowKey(set_, protocol, self.first), RowKey(set_, protocol, self.second)

    @property
    def where(self) -> str:
        """Place and metric, as the table shows it."""
        return f"{self.part}, {self.metric}"

    @property
    def evidence(self) -> str:
        """Rows that decide."""
        second = f"{self.second}, {self.other}" if self.other else self.second
        return f"{self.study}: {self.first} − {second}"

    @property
    def sign(self) -> int:
        """1 if larger values are better, −1 if smaller ones are."""
        return 1 if self.metric in HIGHER else -1

    @property
    def overlap(self) -> float:
        """Size of the test over the training part; 0 if all seeds have one test part."""
        return OVERLAP.get(self.part.partition("/")[0], 0.0)

    @property
    def smallest(self) -> float:
        """Smallest effect of interest."""
        return SMALLEST[self.study][self.metric]

    def paired(self, results: Mapping[str, Results]) -> Paired | None:
        """Return the differences; None if the rows share no seed."""
        if not (pairs := self.values(results)):
            return None
        unit = fmean(second for _, second in pairs.values()) if self.metric in RELATIVE else 1.0
        return Paired([self.sign * (first - second) / unit for first, second in pairs.values()], self.overlap)

    def values(self, results: Mapping[str, Results]) -> dict[int, tuple[float, float]]:
        """Return seed -> values of both rows, of the seeds that both have."""
        ours, others = (
            self._values(results[self.study], key, metric)
            for key, metric in zip(self.keys, (self.metric, self.other or self.metric), strict=True)
        )
        return {seed: (ours[seed], others[seed]) for seed in sorted(ours.keys() & others.keys())}

    def seconds(self, results: Mapping[str, Results]) -> float:
        """Return the mean time of a seed, over both rows."""
        rows = results[self.study].rows
        times = [rows[key].about.seconds for key in dict.fromkeys(self.keys) if key in rows]
        return sum(fmean(each.values()) for each in times if each)

    def _values(self, results: Results, key: RowKey, metric: str) -> dict[int, float]:
        """Return seed -> value of a row; nothing if it was not run."""
        found = results.rows.get(key)
        if found is None or not self.clients:
            return found.values(metric) if found else {}
        each = [found.values(metric, client) for client in self.clients]
        return {seed: fmean(one[seed] for one in each) for seed in each[0] if all(seed in one for one in each)}


@dataclass(frozen=True)
class Finding:
    """A contrast with its numbers.

    Args:
        contrast: The comparison.
        paired: Its differences; None if a row is missing.
        seconds: Time of a seed of both rows; 0 if none was stored.
        corrected: p after Holm's correction over the paper.
    """

    contrast: Contrast
    paired: Paired | None
    seconds: float = 0.0
    corrected: float = 1.0

    @property
    def p_value(self) -> float:
        """Return p before the correction."""
        at = -self.contrast.smallest if self.contrast.no_worse else 0.0
        return self.paired.p_value(at) if self.paired else 1.0

    @property
    def verdict(self) -> Verdict:
        """Verdict by the differences; open without any."""
        if self.paired is None:
            return "open"
        contrast = self.contrast
        return verdict_of(self.paired, self.corrected, contrast.smallest, no_worse=contrast.no_worse)

    @property
    def waits(self) -> bool:
        """True if the comparison is open, although no seed is missing."""
        return self.paired is not None and len(self.paired.differences) >= SEEDS and self.verdict == "open"

    @cached_property
    def needed(self) -> int | None:
        """Number of seeds that would decide it; None if more than `MOST_SEEDS`, or if no pair was measured."""
        contrast = self.contrast
        if self.paired is None:
            return None
        return seeds_needed(self.paired, self.corrected, contrast.smallest, no_worse=contrast.no_worse)

    @property
    def minutes(self) -> float | None:
        """Minutes of one core for these seeds beyond those that are stored; None if nothing would decide."""
        if self.paired is None or self.needed is None:
            return None
        return (self.needed - len(self.paired.differences)) * self.seconds / 60

    @property
    def remark(self) -> str:
        """Missing seeds; of an open comparison without any, the seeds that would decide it and their time."""
        if self.paired is None:
            return "not measured"
        if (done := len(self.paired.differences)) < SEEDS:
            return f"{done} of {SEEDS} seeds"
        if not self.waits:
            return ""
        if self.minutes is None:
            return f"{MOST_SEEDS} seeds would not decide"
        return f"about {self.needed} seeds would decide, {self.minutes:.0f} minutes more"

    def with_corrected(self, value: float) -> "Finding":
        """Return the finding with its corrected p."""
        return replace(self, corrected=value)


def contrasts(
    study: str, parts: Collection[str], pairs: Collection[tuple[str, str]], metrics: Collection[str]
) -> tuple[Contrast, ...]:
    """Return the contrasts of all parts, pairs and metrics."""
    return tuple(Contrast(study, part, *pair, metric) for part in parts for pair in pairs for metric in metrics)
