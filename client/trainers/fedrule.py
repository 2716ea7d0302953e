"""The client side of FedRule (Algorithm 1, Eq 3); mirror of `server/strategies/fedrule.py`.

δ_k never leaves this side. A round's own d_k is kept pending until the server says which round it counted: only then
does the increment d_k − d̄ cancel over the clients that took part, which keeps Σδ_k = 0.
"""

import torch

from client.stacked_tensors import Tensors
from client.trainers.fedavg import FedAvgTrainer
from client.trainers.spec import ClientMethod, LocalResult
from common.arrays import Arrays
from common.methods import fedrule
from common.methods.fedrule import FedRule
from common.models import tensors


class FedRuleTrainer(FedAvgTrainer):
    """Descent along g̃ = ∇L_k − λδ_k."""

    def __init__(self, options: FedRule) -> None:
        super().__init__(options)
        self.rule = options

    def settle(self, state: dict[str, Tensors], counted: bool, shared: Tensors) -> Tensors:
        """δ_k ← δ_k + d_k − d̄ for the pending round, if it counted; δ_k⁰ = 0 (an empty control)."""
        delta, pending = state.get("delta", {}), state.get("pending", {})
        if not (counted and pending and shared):
            return delta
        increment = {n: d - shared[n] if n in shared else torch.zeros_like(d) for n, d in pending.items()}
        return {n: delta[n] + increment[n] for n in delta} if delta else increment

    def correct(self, gradient: Tensors, params: Tensors, start: Tensors, control: Tensors) -> Tensors:
        """g̃ = ∇L_k − λδ_k (line 4)."""
        return {n: g - self.rule.strength(n) * control[n] for n, g in gradient.items()} if control else gradient

    def conclude(self, control: Tensors, displacement: Tensors, gradient: Tensors, steps: int) -> LocalResult:
        """d_k: Δ_k/(ητ_k) (Eq 3), or the mean corrected gradient s_k, which equals it under SGD."""
        d = self._d(displacement, gradient, steps)
        return LocalResult(gradient if self._by_gradient else {}, {"delta": control, "pending": d})

    def released(self, update: Arrays, gradient: Arrays, steps: int) -> dict[str, Tensors]:
        """d_k as the server averaged it: with another one Σδ_k would be what clip and noise make of Σd_k."""
        return {"pending": self._d(tensors(update), tensors(gradient), steps)}

    @property
    def _by_gradient(self) -> bool:
        return self.rule.control == "grad_mean"

    def _d(self, displacement: Tensors, gradient: Tensors, steps: int) -> Tensors:
        return gradient if self._by_gradient else {n: m / (self.rule.rate(n) * steps) for n, m in displacement.items()}


METHOD = ClientMethod(fedrule.METHOD, FedRuleTrainer)
