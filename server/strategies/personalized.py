"""Strategy of FedRep, Ditto and local training: the mean of the shared layers."""

from common.arrays import Arrays, sub
from common.methods import personalized
from common.methods.spec import MethodOptions
from server.aggregation.optimizers import OptimizerState
from server.strategies.replies import Reply, mean_update
from server.strategies.round import RoundStrategy
from server.strategies.spec import RoundParts, ServerMethod


class SharedMeanStrategy(RoundStrategy):
    """Mean of shared layers: θ ← θ − Δ̄; private layers keep their initial values, for new clients."""

    def __init__(self, options: MethodOptions, parts: RoundParts) -> None:
        super().__init__(parts)

    def update(self, state: OptimizerState, model: Arrays, replies: list[Reply]) -> tuple[Arrays, OptimizerState]:
        """Return θ − Δ̄ over the shared layers."""
        step = mean_update(replies)
        return {**model, **sub({name: model[name] for name in step}, step)}, state


FEDREP = ServerMethod(personalized.FEDREP, SharedMeanStrategy)
DITTO = ServerMethod(personalized.DITTO, SharedMeanStrategy)
LOCAL = ServerMethod(personalized.LOCAL, SharedMeanStrategy)
