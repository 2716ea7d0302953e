"""Metrics of clients in secure sums: a value in [0, 1] and a 1 for each one that a client has."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from common.arrays import Array, Arrays, add_prefix, group
from common.metrics import USED, power_of
from common.tasks.spec import ALONE_PREFIX, AnyTask

VALUES = "metrics"
"""Name of the values and their presence, K × 2."""

PAIRED = "paired"
"""Prefix of the sums of differences between two models."""

PAIRED_SUMS = 5
"""Number of these sums: n, Σd, Σd², wins and losses."""


@dataclass(frozen=True)
class SummedMetrics:
    """Metrics of a secure sum, in the order of its vector.

    Args:
        ranges: Metric key -> public range. A value beyond it counts as its end.
        pairs: Comparisons whose sums of differences are in the vector.
    """

    ranges: Mapping[str, tuple[float, float]]
    pairs: tuple[str, ...] = ()

    @property
    def template(self) -> Arrays:
        """Zeros of the names, shapes and dtypes of a client's arrays."""
        paired = {key: np.zeros(PAIRED_SUMS) for key in self.pairs}
        return {VALUES: np.zeros((len(self.ranges), 2)), **add_prefix(PAIRED, paired)}

    @property
    def clip(self) -> float:
        """Largest norm of a client's values."""
        return math.sqrt(2 * len(self.ranges))

    def pack(self, metrics: Mapping[str, float], weights: Mapping[str, float], paired: Mapping[str, Array]) -> Arrays:
        """Return a client's arrays; zeros for metrics that it lacks or cannot compute."""
        arrays = self.template
        for row, (key, (low, high)) in zip(arrays[VALUES], self.ranges.items(), strict=True):
            value = metrics.get(key, math.nan)
            if math.isfinite(value) and weights.get(key, 0.0) > 0:
                row[:] = min(max((value - low) / (high - low), 0.0), 1.0) ** power_of(key), 1.0
        for key, sums in paired.items():
            if key in self.pairs and np.isfinite(sums).all():
                arrays[f"{PAIRED}/{key}"] = np.asarray(sums, np.float64)
        return arrays

    def means(self, total: Mapping[str, Array], spread: float = 0.0) -> dict[str, float]:
        """Return the mean of each metric over the clients that have it.

        Metrics that no client has are left out, and those of fewer clients than twice the noise on their number.

        Args:
            total: Sums over the clients.
            spread: Standard deviation of the noise on each sum.
        """
        found = {}
        for (value, present), (key, (low, high)) in zip(total[VALUES].tolist(), self.ranges.items(), strict=True):
            if present > max(0.5, 2 * spread):
                found[key] = low + (high - low) * min(max(value / present, 0.0), 1.0) ** (1 / power_of(key))
        return found

    def differences(self, total: Mapping[str, Array]) -> dict[str, Array]:
        """Return comparison -> sums of differences over all clients, of those that have some."""
        return {key: sums for key, sums in group(PAIRED, total).items() if sums[0] >= 1}


@cache
def summed_metrics(task: AnyTask, *, noised: bool) -> SummedMetrics:
    """Return the metrics of a task that secure sums carry.

    With noise these are the objective and its simple baseline: each further metric adds to the noise of all.
    """
    if noised:
        keys = (task.objective.metric, task.simple.get(task.objective.metric))
        return SummedMetrics({key: _range_of(task, key) for key in keys if key})
    of_model = [key for spec in task.metrics for key in spec.keys]
    prefixes = [family.prefix for family in task.families]
    nested = ["".join(pair) for pair in itertools.permutations(prefixes, 2)]
    ranges = {f"{prefix}{key}": _range_of(task, key) for prefix in ("", *prefixes, *nested) for key in of_model}
    if task.comparison is None:
        return SummedMetrics(ranges)
    alone = {f"{ALONE_PREFIX}{task.objective.metric}": ranges[task.objective.metric]}
    used = {f"{USED.prefix}{key}": ranges[key] for baseline in task.baselines.values() for key in baseline}
    return SummedMetrics(ranges | used | alone, task.pairs)


def _range_of(task: AnyTask, key: str) -> tuple[float, float]:
    spec = task.find_metric(key)
    if spec is None:
        return 0.0, 1.0
    low = spec.low if math.isfinite(spec.low) else -spec.summed_to
    return low, spec.high if math.isfinite(spec.high) else max(spec.summed_to, low + 1.0)
