"""Pooled property of each cluster in words, from the bounds that its clients sent."""

from collections.abc import Iterator, Mapping

import numpy as np

from common.arrays import Array, Arrays, Floats
from common.tasks.traffic.vocabulary import DAY, HOUR
from deploy.tasks.traffic.clock import KINDS
from server.aggregation.clusters import pool_ranges
from server.checkpoints import Checkpoint

UNIT = "standard deviations from each sensor's mean"


def describe_clusters(checkpoint: Checkpoint) -> dict[str, str]:
    """Return cluster -> highest and lowest hours of its property; empty without clusters or properties."""
    clusters, low, high = (checkpoint.groups.get(name, {}) for name in ("cluster", "low", "high"))
    members: dict[int, list[str]] = {}
    for client in sorted(clusters.keys() & low.keys() & high.keys()):
        members.setdefault(int(clusters[client]), []).append(client)
    return {str(j): text for j, names in members.items() if (text := _describe(names, low, high))}


def _describe(names: list[str], low: Arrays, high: Arrays) -> str:
    """Return the property of the first variable in words; empty if it has no range by the hour."""
    pooled: Mapping[str, Array] = pool_ranges([low[name] for name in names], [high[name] for name in names])
    bounds = np.stack([pooled["low"], pooled["high"]])
    if bounds.ndim != 3 or bounds.shape[1] != 7 * DAY // HOUR or not np.isfinite(bounds[..., 0]).all():
        return ""
    return f"{'; '.join(_extremes(bounds[..., 0]))}, in {UNIT}"


def _extremes(bounds: Floats) -> Iterator[str]:
    """Yield a clause for each kind of days, from bounds by hour of the week, 2 × 168."""
    day = DAY // HOUR
    for days, first in KINDS:
        hours = bounds[:, first * day : (first + 1) * day]
        middle = hours.mean(axis=0)
        top, least = int(middle.argmax()), int(middle.argmin())
        high, low = (f"{hours[0, hour]:.1f} to {hours[1, hour]:.1f}".replace("-", "−") for hour in (top, least))
        yield f"{days} highest at {top:02d}:00 ({high}) and lowest at {least:02d}:00 ({low})"
