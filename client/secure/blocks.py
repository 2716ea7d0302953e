"""Blocks of a training sum: updates per configured step, magnitudes and the weight of a client."""

from dataclasses import dataclass, replace

import numpy as np

from client.privacy.transforms import Released, Update, Work
from common.arrays import Arrays, add_prefix, group
from common.config.run import RunConfig
from common.wire.messages import LOCAL


@dataclass(frozen=True)
class Blocks:
    """Select step: the arrays that a client adds to the sum of a round.

    `update/` holds w·Δ_k·τ/τ_k, `gradient/` w·s_k, `absolute/` the magnitudes of `update/`, and `weight` w, where the method
    needs them. In runs without noise that weigh by records w = min(records, most-examples)/most-examples, else 1.

    Args:
        config: Configuration of the run.
        steps: Number τ_k of local steps of the client.
    """

    config: RunConfig
    steps: int

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
        return Update({**arrays, **({"weight": np.array([weight])} if self._is_weighted else {})})

    def restore(self, released: Released) -> Released:
        """Encode step: turn the client's own part back into an update and a gradient, in runs with noise."""
        own: Arrays = {name: a * self._share for name, a in group("update", released.own).items()}
        gradient = add_prefix("gradient", group("gradient", released.own))
        return replace(released, own={**add_prefix("update", own), **gradient})

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
