"""FedAvg and FedProx on the server."""

from typing import Any

from common.arrays import Arrays, scale, sub
from common.methods.registry import FedAvg, FedProx
from server.aggregation.optimizers import OptimizerState, momentum
from server.strategies.replies import Reply, mean_update
from server.strategies.round import RoundStrategy


class FedAvgStrategy(RoundStrategy):
    """θ ← θ − ηₛm with m ← βm + Δ̄ (McMahan et al. 2017; FedAvgM for β > 0)."""

    def __init__(self, algorithm: FedAvg, **parts: Any) -> None:
        super().__init__(**parts)
        self.eta, self.beta = algorithm.eta, algorithm.momentum

    def update(self, memory: OptimizerState, model: Arrays, replies: list[Reply]) -> tuple[Arrays, OptimizerState]:
        """One server step."""
        m, memory = momentum(memory, mean_update(replies), self.beta)
        return sub(model, scale(m, self.eta(*self.coming))), memory


class FedProxStrategy(RoundStrategy):
    """θ ← θ − Δ̄ (Li et al. 2020): the proximal term works on the client."""

    def __init__(self, algorithm: FedProx, **parts: Any) -> None:
        super().__init__(**parts)

    def update(self, memory: OptimizerState, model: Arrays, replies: list[Reply]) -> tuple[Arrays, OptimizerState]:
        """One server step."""
        return sub(model, mean_update(replies)), memory
