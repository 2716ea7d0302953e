"""FedRep, Ditto and training alone on the server: plain averaging of what clients share."""

from typing import Any

from common.arrays import Arrays, sub
from common.methods.registry import Ditto, FedRep, Local
from common.private_layers import head_of
from server.aggregation.optimizers import OptimizerState
from server.strategies.replies import Reply, mean_update
from server.strategies.round import RoundStrategy


class SharedMeanStrategy(RoundStrategy):
    """θ ← θ − Δ̄ over the shared layers; private ones stay at the values that newcomers start from."""

    def __init__(self, algorithm: FedRep | Ditto | Local, **parts: Any) -> None:
        super().__init__(**parts)
        self.algorithm = algorithm

    def update(self, memory: OptimizerState, model: Arrays, replies: list[Reply]) -> tuple[Arrays, OptimizerState]:
        """One server step."""
        step = mean_update(replies)
        return {**model, **sub({name: model[name] for name in step}, step)}, memory

    def wanted(self, model: Arrays) -> Arrays:
        """All layers, all but the head, or none."""
        match self.algorithm:
            case Ditto():
                return super().wanted(model)
            case FedRep():
                private = head_of(self.config.task, model)
                return {name: a for name, a in model.items() if name not in private}
            case Local():
                return {}
