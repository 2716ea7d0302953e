"""Per-FedAvg on the server (Fallah et al. 2020, Algorithm 1)."""

from common.arrays import Arrays, sub
from common.methods import perfedavg
from common.methods.perfedavg import PerFedAvg
from server.aggregation.optimizers import OptimizerState
from server.strategies.replies import Reply, mean_update
from server.strategies.round import RoundStrategy
from server.strategies.spec import RoundParts, ServerMethod


class PerFedAvgStrategy(RoundStrategy):
    """w ← mean w_k: what is meta-learnt is in the clients' steps."""

    def __init__(self, algorithm: PerFedAvg, parts: RoundParts) -> None:
        super().__init__(parts)

    def update(self, memory: OptimizerState, model: Arrays, replies: list[Reply]) -> tuple[Arrays, OptimizerState]:
        """One server step."""
        return sub(model, mean_update(replies)), memory


METHOD = ServerMethod(perfedavg.METHOD, PerFedAvgStrategy)
