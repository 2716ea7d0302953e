"""Description of metrics: names, direction, digits, meaning."""

from dataclasses import dataclass
from typing import Literal

Better = Literal["lower", "higher", ""]


@dataclass(frozen=True)
class MetricSpec:
    """One metric.

    Args:
        key: Key in metrics.jsonl and result.json; a final `*` stands for a cut-off, as in `hr*`.
        short: Name in a progress line.
        label: Name in a heading.
        better: Direction of better values; empty where there is none.
        digits: Digits after the point.
        meaning: One plain sentence.
        headline: True if it stands in progress lines and gets a curve; False if it stands in tables only.
        baseline: True if it is the metric of an untrained reference.
        short_table: True if it stands in short tables.
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


@dataclass(frozen=True)
class MetricFamily:
    """Metrics with a prefix: those of another model, or of a subset of the records.

    Args:
        prefix: Prefix of the keys, such as `cluster_`.
        origin: Origin of the values, for labels.
        baseline: True if they are metrics of an untrained reference.
        better: False if neither direction is better, such as for the truth itself.
        headlines: Keys, with prefix, that stand in progress lines.
        short_table: Keys, with prefix, that stand in short tables; None for those whose metric without prefix does.
    """

    prefix: str
    origin: str
    baseline: bool = False
    better: bool = True
    headlines: tuple[str, ...] = ()
    short_table: tuple[str, ...] | None = None
