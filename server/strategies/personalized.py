"""FedRep, Ditto and training alone on the server: plain averaging of what clients share."""

from common.arrays import Arrays, sub
from common.methods import personalized
from common.methods.spec import MethodOptions
from server.aggregation.optimizers import OptimizerState
from server.strategies.replies import Reply, mean_update
from server.strategies.round import RoundStrategy
from server.strategies.spec import RoundParts, ServerMethod


class SharedMeanStrategy(RoundStrategy):
    """θ ← θ − Δ̄ over the shared layers; private ones stay at the values that newcomers start from."""

    def __init__(self, algorithm: MethodOptions, parts: RoundParts) -> None:
        super().__init__(parts)

    def update(self, memory: OptimizerState, model: Arrays, replies: list[Reply]) -> tuple[Arrays, OptimizerState]:
        """One server step."""
        step = mean_update(replies)
        return {**model, **sub({name: model[name] for name in step}, step)}, memory


FEDREP = ServerMethod(personalized.FEDREP, SharedMeanStrategy)
DITTO = ServerMethod(personalized.DITTO, SharedMeanStrategy)
LOCAL = ServerMethod(personalized.LOCAL, SharedMeanStrategy)
