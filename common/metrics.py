"""Metric descriptions: names, direction, digits and meaning; the metrics of several tasks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Better = Literal["lower", "higher", ""]


@dataclass(frozen=True)
class MetricSpec:
    """Description of one metric.

    Args:
        key: Key in metrics.jsonl and result.json; a final `*` stands for a cut-off, as in `hr*`.
        short: Name in progress lines.
        label: Name in headings.
        better: Direction of better values; empty if there is none.
        digits: Number of digits after the decimal point.
        meaning: Explanation in one sentence.
        headline: True if progress lines and curves show it; False if only tables do.
        baseline: True if it is a metric of an untrained baseline.
        short_table: True if short tables show it.
        low: Smallest possible value.
        high: Largest possible value.
        cuts: Cut-offs that stand for `*` in secure sums.
        summed_to: Largest value in secure sums if `high` is infinite; larger ones count as this one.
    """

    key: str
    short: str
    label: str
    better: Better
    digits: int
    meaning: str
    headline: bool = True
    baseline: bool = False
    short_table: bool = True
    low: float = -math.inf
    high: float = math.inf
    cuts: tuple[int, ...] = ()
    summed_to: float = 5.0

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the metric; without cut-offs none of those that `*` stands for."""
        return tuple(self.key.replace("*", str(cut)) for cut in self.cuts) if "*" in self.key else (self.key,)


def share(key: str, short: str, label: str, meaning: str, **options: Any) -> MetricSpec:
    """Return a metric between 0 and 1 of which larger values are better; `options` are further fields."""
    return MetricSpec(key, short, label, "higher", 3, meaning, low=0, high=1, **options)


def error(key: str, short: str, label: str, meaning: str, digits: int = 4, **options: Any) -> MetricSpec:
    """Return a metric of at least 0 of which smaller values are better; `options` are further fields."""
    return MetricSpec(key, short, label, "lower", digits, meaning, **{"low": 0, **options})


@dataclass(frozen=True)
class MetricFamily:
    """Metrics with a common prefix, of another model or of a subset of the records.

    Args:
        prefix: Prefix of the keys, such as `cluster_`.
        origin: Source of the values, for labels.
        baseline: True if they are metrics of an untrained baseline.
        better: False if neither direction is better, as for statistics of the ground truth.
        headlines: Keys, with prefix, that progress lines show.
        short_table: Keys, with prefix, that short tables show; None: as for the metric without prefix.
    """

    prefix: str
    origin: str
    baseline: bool = False
    better: bool = True
    headlines: tuple[str, ...] = ()
    short_table: tuple[str, ...] | None = None


def find_metric(key: str, metrics: Sequence[MetricSpec], families: Sequence[MetricFamily]) -> MetricSpec | None:
    """Return the description that a key of clients falls under; None if no metric and family has it."""
    for spec in metrics:
        stem, star, end = spec.key.partition("*")
        cut = key.removeprefix(stem).removesuffix(end)
        if key == spec.key or (star and key == f"{stem}{cut}{end}" and cut.isascii() and cut.isdigit()):
            return spec
    rests = (key.removeprefix(family.prefix) for family in families if key.startswith(family.prefix))
    return next((found for rest in rests if (found := find_metric(rest, metrics, families))), None)


def power_of(key: str) -> int:
    """Return 2 for root mean squares, which average as their squares, else 1."""
    return 2 if "rmse" in key.split("_") else 1


LOSS = error("loss", "loss", "Loss", "Mean loss of the predictions on held-out data; 0 is certain and right.", 3)
HIT_RATE = share("hr*", "hr@*", "Hit rate @*", "Share of the held-out answers among the first * suggestions.")
MRR = share("mrr*", "mrr@*", "MRR @*", "Mean of 1/position of the first right answer; 0 beyond *.")
NDCG = share("ndcg*", "ndcg@*", "NDCG @*", "Right answers among the first *, discounted by position; 1 is perfect.")

EXAMPLES = MetricSpec("examples", "examples", "Examples", "", 0, "Number of training records of each client.")
"""Number of records; not a metric, but reported per client like one."""

SUMS_ALONE = MetricFamily("sums_", "sums alone")
"""Metrics of the closed form on top of which a network has trained."""

MODEL_FAMILIES = (MetricFamily("cluster_", "cluster model"), MetricFamily("global_", "shared model"), SUMS_ALONE)
"""Metrics of further models: the shared one beside a personalized one, and sums alone."""

USED = MetricFamily("used_", "as clients use it")
"""Metric of what clients use: each its model, or a baseline that is better on its own validation data."""
