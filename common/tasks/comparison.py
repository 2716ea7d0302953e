"""Comparison of models by the units of a task's data."""

from dataclasses import dataclass

SIMPLE = "simple"
"""Key of the sums of differences to the simple baseline."""

ALONE = "alone"
"""Key of the sums of differences to models that each client trained alone."""

ALONE_PREFIX = "alone_"
"""Prefix of the metrics of these models."""

ALONE_ROUNDS = f"{ALONE_PREFIX}rounds"
"""Number of rounds that a client trained alone, sent as a metric."""


@dataclass(frozen=True)
class Comparison:
    """Comparison of models unit by unit, for the verdict on a run.

    Args:
        metric: Key of the compared metric.
        units: Plural noun of the units of data, such as `homes`.
        baseline: Name of the simple baseline, whose metric is that of `TaskSpec.simple`.
        higher_is_better: True if higher values of the metric are better.
        answers: True if the baseline answers a client's queries where noise left the model no better.
    """

    metric: str
    units: str
    baseline: str
    higher_is_better: bool = False
    answers: bool = False
