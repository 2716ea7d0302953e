"""Strategy of Per-FedAvg (Fallah et al. 2020, Algorithm 1)."""

from common.arrays import Arrays, sub
from common.methods import perfedavg
from common.methods.perfedavg import PerFedAvg
from server.aggregation.optimizers import OptimizerState
from server.strategies.replies import Reply, mean_update
from server.strategies.round import RoundStrategy
from server.strategies.spec import RoundParts, ServerMethod


class PerFedAvgStrategy(RoundStrategy):
    """Per-FedAvg: w ← mean w_k; the meta-gradient is in the clients' steps."""

    def __init__(self, options: PerFedAvg, parts: RoundParts) -> None:
        super().__init__(parts)

    def update(self, state: OptimizerState, model: Arrays, replies: list[Reply]) -> tuple[Arrays, OptimizerState]:
        """Return the mean of the clients' w_k."""
        return sub(model, mean_update(replies)), state


METHOD = ServerMethod(perfedavg.METHOD, PerFedAvgStrategy)
