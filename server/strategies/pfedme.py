"""pFedMe on the server (Dinh et al. 2020, Algorithm 1)."""

from common.arrays import Arrays, mean, scale, sub
from common.methods import pfedme
from common.methods.pfedme import PFedMe
from server.aggregation.optimizers import OptimizerState
from server.strategies.replies import Reply
from server.strategies.round import RoundStrategy
from server.strategies.spec import RoundParts, ServerMethod


class PFedMeStrategy(RoundStrategy):
    """w ← (1 − β)w + β·mean w_i."""

    def __init__(self, algorithm: PFedMe, parts: RoundParts) -> None:
        super().__init__(parts)
        self.beta = algorithm.beta

    def update(self, memory: OptimizerState, model: Arrays, replies: list[Reply]) -> tuple[Arrays, OptimizerState]:
        """One server step; the mean is not taken per local step, since each reply is a solution of its own."""
        step = mean([reply.train.update for reply in replies], [reply.weight for reply in replies])
        return sub(model, scale(step, self.beta)), memory


METHOD = ServerMethod(pfedme.METHOD, PFedMeStrategy)
