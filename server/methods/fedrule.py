"""FedRule (Algorithm 1, Eq 3); the client side is `client/trainers/fedrule.py`.

The server needs means only, so secure sums apply; δ_k stays on the client. A client that missed rounds receives the
mean of its last aggregated round. A round's mean is therefore stored until all clients of that round are aggregated again.
"""

import numpy as np

from common.arrays import Arrays, scale, sub
from common.contribution import Contribution
from common.methods import fedrule
from common.methods.fedrule import ANEW, FedRule
from server.aggregation.optimizers import adaptive
from server.round.method import Groups, Method, RoundContext, ServerMethod

ASIDE = "aside"
"""Group of the state with the number of clients that were set aside when δ_k last began anew."""


class FedRuleStep(Method):
    """FedRule: θ^{c+1} = θ^c − Δ̄, and a broadcast of d̄ for δ_k ← δ_k + d_k − d̄.

    Once clients are set aside until the run ends, δ_k ← d_k − d̄: earlier d̄ include their d_k, so Σδ_k of the rest is not 0.
    """

    def __init__(self, options: FedRule) -> None:
        self.options = options

    def update(self, at: RoundContext, state: Groups, model: Arrays, total: Contribution) -> tuple[Arrays, Groups]:
        """Return θ^c − Δ̄, and d̄ of this and of earlier rounds as state."""
        d_mean = self._mean_d(total)
        step, state = self._step(state, total.mean_update())
        awaited = {*{**at.counted, **dict.fromkeys(total.names, at.number)}.values()}
        state = {key: a for key, a in state.items() if not key.startswith("mean.") or int(key[5:]) in awaited}
        memory = at.state.reply_memory
        aside = {ASIDE: np.array(float(len({*memory.allied, *memory.excluded})))}
        if aside[ASIDE] > state.get(ASIDE, {}).get(ASIDE, 0):
            state, d_mean = {**state, ASIDE: aside}, {**d_mean, ANEW: np.ones(1, np.float32)}
        return sub(model, step), {**state, f"mean.{at.number}": d_mean}

    def broadcast(self, state: Groups, last: int) -> Arrays:
        """Return d̄ of that round."""
        return state.get(f"mean.{last}", {})

    def _mean_d(self, total: Contribution) -> Arrays:
        """Return d̄, with d_k = s_k if clients send it, else Δ_k/(ητ_k)."""
        if self.options.control == "grad_mean":
            return total.mean_gradient()
        return total.mean_direction(self.options.rate)

    def _step(self, state: Groups, delta: Arrays) -> tuple[Arrays, Groups]:
        """Return Δ̄, or Adam's step on Δ̄."""
        if self.options.server_optimizer == "none":
            return delta, state
        o = self.options
        step, state = adaptive(state, delta, "adam", beta1=o.beta1, beta2=o.beta2, tau=o.tau)
        return scale(step, o.server_lr), state


METHOD = ServerMethod(fedrule.METHOD, FedRuleStep)
