"""Blocks of a sum over clients in clusters: one for each cluster, and the number of its clients. Pure.

A client's update is in the block of its own cluster, with zeros in the others. `cluster` marks that cluster. With noise the
mark has half the clip norm C, and the update at most the rest, so that clipping an update leaves the mark as it is.
"""

import math

import numpy as np

from common.arrays import Arrays, add_prefix, group, zeros_like

CLUSTER = "cluster"
"""Block of the mark of a client's cluster, of K numbers."""

WEIGHT = "weight"
"""Block of a client's weight, in runs without noise that weigh by records."""

_SHARE = 0.5
"""Norm of the mark as a share of C."""


def to_clusters(arrays: Arrays, cluster: int, clusters: int, clip: float = 0.0) -> Arrays:
    """Return a client's blocks `update` and `weight` as those of its cluster.

    Args:
        arrays: Blocks of a client.
        cluster: Number of its cluster.
        clusters: Number K of clusters.
        clip: Clip norm C; 0 without noise.
    """
    update, one_hot = group("update", arrays), np.eye(clusters)[cluster]
    blocks: Arrays = {CLUSTER: one_hot * mark(clip)}
    for j in range(clusters):
        blocks |= add_prefix(f"update/{j}", update if j == cluster else zeros_like(update))
    return {**blocks, **({WEIGHT: one_hot * arrays[WEIGHT]} if WEIGHT in arrays else {})}


def mark(clip: float) -> float:
    """Return the number that marks a client's cluster, for a clip norm C; 1 without noise."""
    return _SHARE * clip or 1.0


def update_clip(clip: float) -> float:
    """Return the largest norm of an update beside its mark."""
    return clip * math.sqrt(1 - _SHARE**2)
