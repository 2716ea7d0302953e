"""What is claimed of the results, each checked against the figures and stated either way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from benchmarks.rules.study import Row

NAMES = {
    "loss": "loss",
    "auc": "AUC",
    "mr0": "MR",
    "hr20": "HR@20",
    "filtered_hr20": "HR@20 with rule filter",
}
HIGHER_IS_BETTER = {"auc", "hr20", "filtered_hr20"}


@dataclass(frozen=True)
class Target:
    """A bound on a row's mean over seeds."""

    row: str
    metric: str
    bound: float

    def holds(self, mean: float) -> bool:
        """Whether the mean is on the right side."""
        return mean >= self.bound if self.metric in HIGHER_IS_BETTER else mean <= self.bound

    @property
    def text(self) -> str:
        """`loss ≤ 0.20`."""
        return f"{NAMES[self.metric]} {'≥' if self.metric in HIGHER_IS_BETTER else '≤'} {self.bound:g}"


@dataclass(frozen=True)
class Duel:
    """Two rows on the same seeds."""

    metric: str
    differences: tuple[float, ...]
    """First minus second, seed by seed."""

    @property
    def won(self) -> int:
        """Seeds in which the first is better."""
        sign = 1 if self.metric in HIGHER_IS_BETTER else -1
        return sum(sign * difference > 0 for difference in self.differences)

    @property
    def text(self) -> str:
        """`−0.364 ± 0.041, 5/5`."""
        spread = f" ± {stdev(self.differences):.3f}" if len(self.differences) > 1 else ""
        return f"{fmean(self.differences):+.3f}{spread}, {self.won}/{len(self.differences)}".replace("-", "−")


TARGETS = (
    *(
        Target(row, m, b)
        for row in ("fedrule-adam", "fedrule-server")
        for m, b in (("loss", 0.2), ("auc", 0.98), ("mr0", 5.0))
    ),
    *(
        Target(row, m, b)
        for row in ("default-fedrule", "default-counts")
        for m, b in (("loss", 0.08), ("mr0", 1.0), ("hr20", 0.4))
    ),
)
"""Of setup A."""

METHODS_PAIRS = (
    ("fedrule-adam", "fedgnn-adam"),
    ("fedrule-adam", "fedgnn-adam-reset"),
    ("fedrule-server", "fedgnn-adam"),
    ("fedrule-server", "fedgnn-server"),
    ("fedrule-sgd", "fedgnn-sgd"),
    ("fedrule-adam", "graphrule-adam"),
    ("default-fedrule", "default-fedgnn"),
    ("default-fedrule", "fedrule-adam"),
)

FLOOR_PAIRS = tuple(
    (row, floor)
    for row in ("fedrule-adam", "default-fedrule", "default-counts")
    for floor in ("counts-relation", "counts-sides", "counts-triple")
)


def mean_of(row: Row, metric: str) -> float:
    """Mean over the row's seeds."""
    return fmean(metrics[metric] for metrics in row.seeds.values())


def duel(first: Row, second: Row, metric: str) -> Duel:
    """Compare on the seeds that both have."""
    seeds = sorted(first.seeds.keys() & second.seeds.keys())
    return Duel(metric, tuple(first.seeds[s][metric] - second.seeds[s][metric] for s in seeds))


def check(rows: Mapping[str, Row]) -> list[tuple[str, str, str, str]]:
    """(row, target, measured, verdict) of every target whose row was measured."""
    checked = []
    for target in TARGETS:
        if target.row in rows:
            mean = mean_of(rows[target.row], target.metric)
            verdict = "holds" if target.holds(mean) else "**does not hold**"
            checked.append((rows[target.row].title, target.text, f"{mean:.3f}", verdict))
    return checked


def duels(rows: Mapping[str, Row], pairs: Sequence[tuple[str, str]]) -> list[tuple[str, ...]]:
    """(first, second, text of each metric's duel …) of every pair that was measured."""
    return [
        (rows[a].title, rows[b].title, *(duel(rows[a], rows[b], metric).text for metric in NAMES))
        for a, b in pairs
        if a in rows and b in rows
    ]
