"""Description of one metric: names, direction, digits, meaning."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class MetricSpec:
    """One metric.

    Args:
        key: As in metrics.jsonl and result.json.
        short: For a line in a log.
        label: For a heading.
        better: Which way is better; empty where nobody can say.
        digits: Digits after the point.
        meaning: One plain sentence.
        headline: Whether it belongs in a line or gets a curve, or only stands in tables.
    """

    key: str
    short: str
    label: str
    better: Literal["lower", "higher", ""]
    digits: int
    meaning: str
    headline: bool = True
