"""Figures of the robustness study, from its stored results: quality, names, cost and shown metrics."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from studies.harness.results import Results
from studies.harness.row import Row, mean_sd
from studies.robustness.cases import ATTACKS, HONEST, METRICS, QUALITY, RULES, SETTINGS, SHARES, Case, all_cases

HARMFUL = tuple(attack for attack in ATTACKS if attack != METRICS)
"""Attacks on the model."""

PERCENT = 100.0


@dataclass(frozen=True)
class Figures:
    """Figures of the study; shares of attackers start at 0, where all attacks are the honest run.

    Args:
        results: Stored results.
    """

    results: Results

    def row(self, task: str, attack: str, rule: str, share: float) -> Row:
        """Return the trials of a case."""
        case = Case(task, attack, rule, share) if share else Case(task, HONEST, rule)
        return self.results.row(case.key)

    def values(self, task: str, attack: str, rule: str, share: float) -> list[float]:
        """Return the quality of every seed in percent."""
        found = self.row(task, attack, rule, share).values(QUALITY).values()
        return [PERCENT * value for value in found]

    def quality(self, task: str, attack: str, rule: str, share: float) -> float:
        """Return the mean quality over seeds in percent."""
        return fmean(self.values(task, attack, rule, share))

    def cell(self, task: str, attack: str, rule: str, share: float) -> str:
        """Return mean and standard deviation of the quality; empty for a case that was not run."""
        return mean_sd(self.values(task, attack, rule, share), 1)

    def worst(self, task: str, rule: str, share: float) -> tuple[float, str]:
        """Return the least quality of a rule over the attacks on the model, and the attack."""
        return min((self.quality(task, attack, rule, share), attack) for attack in HARMFUL)

    def cost(self, task: str, rule: str) -> float:
        """Return the median processor milliseconds of the server's aggregation of a round."""
        rows = [self.results.row(case.key) for case in all_cases() if (case.task, case.rule) == (task, rule)]
        return 1000 * median(value for row in rows for value in row.values("seconds").values())

    def named(self, attack: str, share: float, task: str = "", rules: Sequence[str] = tuple(RULES)) -> tuple[int, int]:
        """Return the number of attackers named in a round line, and of all attackers, under these rules."""
        rows = [self.row(t, attack, rule, share) for t in ([task] if task else SETTINGS) for rule in rules]
        return _total(rows, "named"), _total(rows, "attackers")

    def mistaken(self, attack: str) -> int:
        """Return the number of honest clients named, over all shares, tasks, rules and seeds."""
        shares = SHARES if attack != HONEST else (0.0,)
        return _total([self.row(t, attack, r, s) for t in SETTINGS for r in RULES for s in shares], "mistaken")

    def total(self, metric: str) -> int:
        """Return the sum of a number over all runs."""
        return _total([self.results.row(case.key) for case in all_cases()], metric)

    @property
    def runs(self) -> int:
        """Number of runs."""
        return sum(len(self.results.row(case.key).trials) for case in all_cases())

    def shown(self, task: str, share: float) -> float:
        """Return the mean metric, in percent, that a run shows under false metrics and the mean as rule."""
        found = self.row(task, METRICS, "none", share).values(f"shown_{QUALITY}").values()
        return PERCENT * fmean(found)


def _total(rows: Sequence[Row], metric: str) -> int:
    return round(sum(value for row in rows for value in row.values(metric).values()))
