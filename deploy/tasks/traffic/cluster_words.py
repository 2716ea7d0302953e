"""Pooled property of each cluster in words, from the bounds that its clients sent."""

from collections.abc import Iterator, Mapping

import numpy as np

from client.tasks.traffic.template_property import TemplateProperty
from common.arrays import Array, Arrays, Floats
from common.logic.rescale import with_digits
from common.tasks.traffic.template_parameters import TEMPLATE, VARIABLES, is_alike, pool_parameters, templates_of
from common.tasks.traffic.vocabulary import DAY, HOUR
from deploy.tasks.traffic.clock import KINDS
from server.aggregation.clusters import pool_ranges
from server.checkpoints import Checkpoint

DIGITS = 2
"""Significant digits of a cluster's formula."""

UNIT = "standard deviations from each sensor's mean"


def describe_clusters(checkpoint: Checkpoint) -> dict[str, str]:
    """Return cluster -> highest and lowest hours of its property; empty without clusters or properties."""
    if templates := templates_of(checkpoint.groups, sorted(checkpoint.groups.get("cluster", {}))):
        return _describe_templates({c: int(j) for c, j in checkpoint.groups["cluster"].items()}, templates)
    clusters, low, high = (checkpoint.groups.get(name, {}) for name in ("cluster", "low", "high"))
    members: dict[int, list[str]] = {}
    for client in sorted(clusters.keys() & low.keys() & high.keys()):
        members.setdefault(int(clusters[client]), []).append(client)
    return {str(j): text for j, names in members.items() if (text := _describe(names, low, high))}


def _describe_templates(clusters: Mapping[str, int], templates: Mapping[str, Arrays]) -> dict[str, str]:
    """Return cluster -> the template of most members, its pooled formula, and the number of other members."""
    words = {}
    for j in sorted({clusters[client] for client in templates}):
        members = [arrays for client, arrays in templates.items() if clusters[client] == j]
        pooled = pool_parameters(members)
        if TEMPLATE not in pooled:  # noise leaves the structure out
            continue
        variables = [f"x{k + 1}" for k in range(int(pooled[VARIABLES].max()) + 1)]
        phi, alike = TemplateProperty(pooled).formula(variables), sum(is_alike(one, pooled) for one in members)
        shown = "no bound" if phi is None else str(with_digits(phi, DIGITS))
        others = f"; {len(members) - alike} members have other templates" if alike < len(members) else ""
        words[str(j)] = f"template {int(pooled[TEMPLATE][0])}: {shown}, in {UNIT}{others}"
    return words


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
