"""FedGA on the server (algorithms.md §2.2); every client sends Δ_k alone, and |Δ_k| is taken here."""

from common.arrays import Arrays, scale, sub
from common.methods import fedga
from common.methods.fedga import FedGA
from server.aggregation.fedga_sums import Share, fold
from server.aggregation.optimizers import OptimizerState, adaptive
from server.strategies.fedopt import FedOptStrategy
from server.strategies.replies import Reply
from server.strategies.spec import RoundParts, ServerMethod


class FedGAStrategy(FedOptStrategy):
    """θ ← θ − ηₛ m_t/(√v_t + τ), with v_t = C-SME(v_{t−1}, Δ'_t²)."""

    def __init__(self, algorithm: FedGA, parts: RoundParts) -> None:
        super().__init__(algorithm, algorithm.second_moment, parts)
        self.dra = algorithm.dra

    def update(self, memory: OptimizerState, model: Arrays, replies: list[Reply]) -> tuple[Arrays, OptimizerState]:
        """One server step."""
        sums = fold(Share(reply.train.update, reply.train.steps, reply.weight) for reply in replies)
        delta = sums.mean()  # lines 8-9: Δ_t = mean Δ_k
        magnitude = sums.magnitude() if self.dra else None  # line 10: Δ'_t = mean |Δ_k|
        step, memory = adaptive(memory, delta, self.rule, magnitude, **self.moments)  # lines 11-13
        return sub(model, scale(step, self.eta(*self.coming))), memory


METHOD = ServerMethod(fedga.METHOD, FedGAStrategy)
