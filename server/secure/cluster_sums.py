"""Means of clusters from one secure sum, of which no client's cluster is known. NumPy."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from common.arrays import Array, Arrays, add_prefix, group
from common.privacy.vectors import from_vector, to_vector
from common.secure.clusters import CLUSTER, WEIGHT, mark, update_clip
from common.secure.layout import SumLayout
from server.secure.helper_sums import NORM_SLACK, bounded
from server.secure.protocol import Total


@dataclass(frozen=True)
class ClusterSums:
    """Sums of clusters.

    Args:
        sizes: Number of clients in each cluster, (K,); with noise an estimate, which may be below 0.
        weights: Sum of their weights, (K,).
        updates: Sum of the updates of each cluster.
        clip: Largest norm of an update; 0 without noise.
        spread: Standard deviation of the noise of a number.
    """

    sizes: Array
    weights: Array
    updates: list[Arrays]
    clip: float
    spread: float

    @classmethod
    def of(cls, total: Total, blocks: Arrays, clusters: int, clip: float) -> Self:
        """Return the sums of clusters in an opened sum.

        Args:
            total: Opened sum.
            blocks: Template of its vector.
            clusters: Number K of clusters.
            clip: Clip norm C; 0 without noise.
        """
        arrays = SumLayout.of(blocks).arrays(total.vector, blocks)
        sizes = np.rint(arrays[CLUSTER] / mark(clip))
        updates = [group(f"update/{j}", arrays) for j in range(clusters)]
        return cls(sizes, arrays.get(WEIGHT, sizes), updates, update_clip(clip), total.spread)

    def means(self, smallest: int) -> Arrays:
        """Return `update/j/name`, the mean update of each cluster j of at least `smallest` clients.

        With noise its norm is at most that of an update and of the noise on it.
        """
        means: Arrays = {}
        for j, update in enumerate(self.updates):
            if self.sizes[j] >= smallest and self.weights[j] > 0:
                mean = to_vector(update) / self.weights[j]
                noise = NORM_SLACK * self.spread * math.sqrt(mean.size) / self.weights[j]
                mean = bounded(mean, self.clip + noise if self.clip else math.inf)
                means |= add_prefix(f"update/{j}", from_vector(mean, update))
        return means
