"""FedRule on the server (Algorithm 1, Eq 3); mirror of `client/trainers/fedrule.py`.

Only means are needed, so secure aggregation fits; δ_k stays with the clients. A client that missed rounds gets the mean
of the last round in which it counted, so each round's mean is kept until every client that counted in it has counted again.
"""

from common.arrays import Arrays, mean, scale, sub
from common.methods import fedrule
from common.methods.fedrule import FedRule
from server.aggregation.optimizers import OptimizerState, adaptive
from server.strategies.replies import Reply, mean_update
from server.strategies.round import RoundStrategy
from server.strategies.spec import RoundParts, ServerMethod


class FedRuleStrategy(RoundStrategy):
    """θ^{c+1} = θ^c − Δ̄, and d̄ broadcast for δ_k ← δ_k + d_k − d̄."""

    def __init__(self, algorithm: FedRule, parts: RoundParts) -> None:
        super().__init__(parts)
        self.algorithm = algorithm

    def update(self, memory: OptimizerState, model: Arrays, replies: list[Reply]) -> tuple[Arrays, OptimizerState]:
        """One server step, remembering d̄."""
        number = self.state.round + 1
        d_mean = mean([self._d(reply) for reply in replies], [reply.weight for reply in replies])
        step, moments = self._step(memory, mean_update(replies))
        waiting = {*self.state.next(model, {}, [r.client for r in replies]).counted.values()}
        history = {key: a for key, a in moments.items() if not key.startswith("mean.") or int(key[5:]) in waiting}
        return sub(model, step), {**history, f"mean.{number}": d_mean}

    def shared(self, memory: OptimizerState, round_number: int) -> Arrays:
        """d̄ of that round."""
        return memory.get(f"mean.{round_number}", {})

    def _d(self, reply: Reply) -> Arrays:
        """d_k: s_k where clients upload it, else Δ_k/(ητ_k)."""
        if self.algorithm.control == "grad_mean":
            return reply.train.gradient
        rate, steps = self.algorithm.rate, reply.train.steps
        return {n: (u / (rate(n) * steps)).astype(u.dtype) for n, u in reply.train.update.items()}

    def _step(self, memory: OptimizerState, mean: Arrays) -> tuple[Arrays, OptimizerState]:
        if self.algorithm.server_optimizer == "none":
            return mean, memory
        a = self.algorithm
        step, memory = adaptive(memory, mean, "adam", beta1=a.beta1, beta2=a.beta2, tau=a.tau)
        return scale(step, a.server_lr), memory


METHOD = ServerMethod(fedrule.METHOD, FedRuleStrategy)
