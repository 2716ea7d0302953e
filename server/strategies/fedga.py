"""Strategy of FedGA (algorithms.md §2.2); clients send Δ_k alone, and the server computes |Δ_k|."""

from common.arrays import Arrays, scale, sub
from common.methods import fedga
from common.methods.fedga import FedGA
from server.aggregation.optimizers import OptimizerState, adaptive
from server.aggregation.round_results import Collected
from server.strategies.fedopt import FedOptStrategy
from server.strategies.spec import RoundParts, ServerMethod


class FedGAStrategy(FedOptStrategy):
    """FedGA: θ ← θ − ηₛ m_t/(√v_t + τ), with v_t = C-SME(v_{t−1}, Δ'_t²)."""

    def __init__(self, options: FedGA, parts: RoundParts) -> None:
        super().__init__(options, options.second_moment, parts)
        self.dra = options.dra

    def update(self, state: OptimizerState, model: Arrays, collected: Collected) -> tuple[Arrays, OptimizerState]:
        """Return θ − ηₛ m_t/(√v_t + τ), and m_t, v_t as state."""
        delta, magnitude = collected.mean_and_magnitude()  # lines 8-10: Δ_t = mean Δ_k, Δ'_t = mean |Δ_k|
        step, state = adaptive(state, delta, self.rule, magnitude if self.dra else None, **self.moments)  # lines 11-13
        return sub(model, scale(step, self.eta(*self.next_round))), state


METHOD = ServerMethod(fedga.METHOD, FedGAStrategy)
