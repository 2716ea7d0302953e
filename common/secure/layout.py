"""Layout of a sum: one vector of named blocks, such as `gradient` and `update`; blocks of clusters.

A client's update is in the block of its own cluster, with zeros in the others. `cluster` marks that cluster. With noise the
mark has half the clip norm C, and the update at most the rest, so that clipping an update leaves the mark as it is.
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from common.arrays import Array, Arrays, Floats, add_prefix, group, zeros_like
from common.errors import WireError
from common.privacy.vectors import from_vector, to_vector
from common.secure.terms import MOST_NUMBERS


@dataclass(frozen=True)
class SumLayout:
    """Names and sizes of the blocks of a vector, in ascending order of names.

    A block holds all arrays whose names share the part before the first slash: `update/weight` belongs to `update`.
    """

    blocks: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, template: Mapping[str, Array]) -> Self:
        """Return the layout of arrays.

        Raises:
            WireError: There are no numbers, or more than 4·10⁶.
        """
        groups = itertools.groupby(sorted(template), lambda name: name.partition("/")[0])
        layout = cls(tuple((block, sum(template[name].size for name in names)) for block, names in groups))
        if not 1 <= layout.size <= MOST_NUMBERS:
            raise WireError(f"a secure sum of {layout.size:,} numbers is not possible; it takes 1 to {MOST_NUMBERS:,}")
        return layout

    @property
    def size(self) -> int:
        """Numbers d of the vector."""
        return sum(size for _, size in self.blocks)

    def vector(self, arrays: Mapping[str, Array]) -> Floats:
        """Return the arrays as one vector.

        Raises:
            WireError: The arrays have another layout.
        """
        if self.of(arrays) != self:
            raise WireError("the arrays do not fit the layout of the sum")
        return to_vector(arrays)

    def arrays(self, vector: Floats, template: Mapping[str, Array]) -> Arrays:
        """Return a vector as arrays of the template's names, shapes and dtypes.

        Raises:
            WireError: The vector or the template has another layout.
        """
        if vector.shape != (self.size,) or self.of(template) != self:
            raise WireError("the vector does not fit the layout of the sum")
        return from_vector(np.asarray(vector, np.float64), template)


CLUSTER = "cluster"
"""Block of the mark of a client's cluster, of K numbers."""

WEIGHT = "weight"
"""Block of a client's weight, at most 1, in runs without noise that weigh by records."""

ROUNDED = 1 + 1e-6
"""Factor on the largest sum of weights, for numbers that are rounded."""

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
