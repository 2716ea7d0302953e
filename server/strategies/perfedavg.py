"""Per-FedAvg on the server (Fallah et al. 2020, Algorithm 1)."""

from typing import Any

from common.arrays import Arrays, sub
from common.methods.registry import PerFedAvg
from server.aggregation.optimizers import OptimizerState
from server.strategies.replies import Reply, mean_update
from server.strategies.round import RoundStrategy


class PerFedAvgStrategy(RoundStrategy):
    """w ← mean w_k: what is meta-learnt is in the clients' steps."""

    def __init__(self, algorithm: PerFedAvg, **parts: Any) -> None:
        super().__init__(**parts)

    def update(self, memory: OptimizerState, model: Arrays, replies: list[Reply]) -> tuple[Arrays, OptimizerState]:
        """One server step."""
        return sub(model, mean_update(replies)), memory
