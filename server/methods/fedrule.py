"""Strategy of FedRule (Algorithm 1, Eq 3); the client side is `client/trainers/fedrule.py`.

The server needs means only, so secure aggregation applies; δ_k stays on the client. A client that missed rounds receives the
mean of its last aggregated round. A round's mean is therefore stored until all clients of that round are aggregated again.
"""

from common.arrays import Arrays, scale, sub
from common.methods import fedrule
from common.methods.fedrule import FedRule
from server.aggregation.optimizers import OptimizerState, adaptive
from server.aggregation.results import Collected
from server.round.method import RoundParts, ServerMethod
from server.round.round import RoundStrategy


class FedRuleStrategy(RoundStrategy):
    """FedRule: θ^{c+1} = θ^c − Δ̄, and a broadcast of d̄ for δ_k ← δ_k + d_k − d̄."""

    def __init__(self, options: FedRule, parts: RoundParts) -> None:
        super().__init__(parts)
        self.options = options

    def update(self, state: OptimizerState, model: Arrays, collected: Collected) -> tuple[Arrays, OptimizerState]:
        """Return θ^c − Δ̄, and d̄ of this and of earlier rounds as state."""
        number = self.state.round + 1
        d_mean = self._mean_d(collected)
        step, state = self._step(state, collected.mean_update())
        awaited = {*self.state.next(model, {}, collected.names).counted.values()}
        state = {key: a for key, a in state.items() if not key.startswith("mean.") or int(key[5:]) in awaited}
        return sub(model, step), {**state, f"mean.{number}": d_mean}

    def broadcast(self, state: OptimizerState, round_number: int) -> Arrays:
        """Return d̄ of that round."""
        return state.get(f"mean.{round_number}", {})

    def _mean_d(self, collected: Collected) -> Arrays:
        """Return d̄, with d_k = s_k if clients send it, else Δ_k/(ητ_k)."""
        if self.options.control == "grad_mean":
            return collected.mean_gradient()
        return collected.mean_direction(self.options.rate)

    def _step(self, state: OptimizerState, delta: Arrays) -> tuple[Arrays, OptimizerState]:
        """Return Δ̄, or Adam's step on Δ̄."""
        if self.options.server_optimizer == "none":
            return delta, state
        o = self.options
        step, state = adaptive(state, delta, "adam", beta1=o.beta1, beta2=o.beta2, tau=o.tau)
        return scale(step, o.server_lr), state


METHOD = ServerMethod(fedrule.METHOD, FedRuleStrategy)
