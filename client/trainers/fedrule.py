"""Trainer of FedRule (Algorithm 1, Eq 3); the server side is `server/methods/fedrule.py`.

δ_k stays on the client. A round's d_k stays pending until the server reports the last round that it aggregated. Only then
do the increments d_k − d̄ sum to 0 over the participants, which keeps Σδ_k = 0.
"""

from collections.abc import Mapping

import torch

from client.trainers.base import ClientMethod, LocalResult
from client.trainers.fedavg import FedAvgTrainer
from client.training.stacks import Tensors
from common.arrays import Arrays
from common.methods import fedrule
from common.methods.fedrule import ANEW, FedRule
from common.models import tensors


class FedRuleTrainer(FedAvgTrainer):
    """Trainer with local descent along g̃ = ∇L_k − λδ_k."""

    acts_on_numbers = True

    def __init__(self, options: FedRule) -> None:
        super().__init__(options)
        self.rule = options

    def settle(self, state: Mapping[str, Tensors], is_counted: bool, shared: Tensors) -> Tensors:
        """Return δ_k ← δ_k + d_k − d̄ if the pending round was aggregated, else δ_k; δ_k⁰ = 0 is empty.

        With `ANEW` in the broadcast, δ_k ← d_k − d̄.
        Of a merged state, whose δ_k is not stored, 0 remains if the pending round was not aggregated.
        """
        if merged := state.get("merged", {}):
            is_settled = is_counted and bool(shared)
            return {n: t - shared[n] if n in shared else torch.zeros_like(t) for n, t in merged.items() if is_settled}
        delta, pending = state.get("delta", {}), state.get("pending", {})
        if not (is_counted and pending and shared):
            return delta
        increment = {n: d - shared[n] if n in shared else torch.zeros_like(d) for n, d in pending.items()}
        return {n: delta[n] + increment[n] for n in delta} if delta and ANEW not in shared else increment

    def correct(self, gradient: Tensors, params: Tensors, start: Tensors, control: Tensors) -> Tensors:
        """Return g̃ = ∇L_k − λδ_k (line 4)."""
        if not control:
            return gradient
        strengths = {n: self.rule.strength(n) for n in gradient}
        pulls = {n: control[n] if strength == 1 else strength * control[n] for n, strength in strengths.items()}
        return {n: g - pulls[n] for n, g in gradient.items()}

    def conclude(self, control: Tensors, displacement: Tensors, gradient: Tensors, steps: int) -> LocalResult:
        """Return s_k if `control` is `grad_mean`, and δ_k with the pending d_k as state."""
        d = self._d(displacement, gradient, steps)
        return LocalResult(gradient if self._by_gradient else {}, {"delta": control, "pending": d})

    def merge_state(self, state: dict[str, Tensors]) -> dict[str, Tensors]:
        """Return δ_k + d_k as one group."""
        delta, pending = state["delta"], state["pending"]
        return {"merged": {n: delta[n] + d for n, d in pending.items()} if delta else pending}

    def released_state(self, update: Arrays, gradient: Arrays, steps: int) -> dict[str, Tensors]:
        """Return the pending d_k as the server averages it; the exact d_k would leave Σδ_k ≠ 0."""
        return {"pending": self._d(tensors(update), tensors(gradient), steps)}

    @property
    def _by_gradient(self) -> bool:
        return self.rule.control == "grad_mean"

    def _d(self, displacement: Tensors, gradient: Tensors, steps: int) -> Tensors:
        """Return d_k: Δ_k/(ητ_k) (Eq 3), or the mean corrected gradient s_k, which equals it under SGD."""
        return gradient if self._by_gradient else {n: m / (self.rule.rate(n) * steps) for n, m in displacement.items()}


METHOD = ClientMethod(fedrule.METHOD, FedRuleTrainer)
