"""Blocks of a training sum: updates per configured step, magnitudes and the weight of a client."""

from dataclasses import dataclass, replace

import numpy as np

from client.privacy.payload import finite_or_zeros
from client.privacy.transforms import Released, Update, Work
from common.arrays import Arrays, add_prefix, group
from common.config.run import RunConfig
from common.privacy.clipping import clip
from common.privacy.vectors import from_vector, to_vector
from common.secure.clusters import WEIGHT, to_clusters, update_clip
from common.wire.messages import LOCAL


@dataclass(frozen=True)
class Blocks:
    """Select step: the arrays that a client adds to the sum of a round.

    `update/` holds w·Δ_k·τ/τ_k, `gradient/` w·s_k, `absolute/` the magnitudes of `update/`, and `weight` w, where the method
    needs them. In runs without noise that weigh by records w = min(records, most-examples)/most-examples, else 1. In methods
    with clusters, these are blocks of the client's own cluster (`common.secure.clusters`).

    Args:
        config: Configuration of the run.
        steps: Number τ_k of local steps of the client.
        cluster: Number of the client's cluster.
        clip: Clip norm C of the sum; 0 without noise.
    """

    config: RunConfig
    steps: int
    cluster: int = 0
    clip: float = 0.0

    def __call__(self, work: Work) -> Work:
        """Return work that computes the blocks."""
        return lambda: self.of(work())

    def of(self, update: Update) -> Update:
        """Return the blocks of an exact update."""
        weight = self._weight(update.examples)
        arrays = {name: weight * a for name, a in update.arrays.items()}
        arrays |= {name: a / self._share for name, a in arrays.items() if name.startswith("update/")}
        if self.config.capabilities.needs_magnitude:
            arrays |= add_prefix("absolute", {name: np.abs(a) for name, a in group("update", arrays).items()})
        arrays |= {WEIGHT: np.array([weight])} if self._is_weighted else {}
        clusters = self.config.capabilities.clusters
        return Update(to_clusters(self._clipped(arrays), self.cluster, clusters, self.clip) if clusters else arrays)

    def restore(self, released: Released) -> Released:
        """Encode step: turn the client's own part back into an update and a gradient, in runs with noise."""
        update = f"update/{self.cluster}" if self.config.capabilities.clusters else "update"
        own: Arrays = {name: a * self._share for name, a in group(update, released.own).items()}
        gradient = add_prefix("gradient", group("gradient", released.own))
        return replace(released, own={**add_prefix("update", own), **gradient})

    def _clipped(self, arrays: Arrays) -> Arrays:
        """Return an update that leaves room for the mark of its cluster, in runs with noise."""
        if not self.clip:
            return arrays
        vector = clip(finite_or_zeros(to_vector(arrays)), update_clip(self.clip), 2, normalise=False)
        return from_vector(vector, arrays)

    @property
    def _share(self) -> float:
        """τ_k/τ; 1 where means are not per step."""
        return self.steps / self.config.method_options.steps(LOCAL) if self.config.capabilities.per_step else 1.0

    @property
    def _is_weighted(self) -> bool:
        return self.config.privacy.unit == "none" and self.config.method_options.weighting == "examples"

    def _weight(self, examples: int) -> float:
        most = self.config.secure_sums.most_examples
        return min(examples, most) / most if self._is_weighted else 1.0
