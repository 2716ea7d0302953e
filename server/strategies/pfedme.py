"""Strategy of pFedMe (Dinh et al. 2020, Algorithm 1)."""

from common.arrays import Arrays, mean, scale, sub
from common.methods import pfedme
from common.methods.pfedme import PFedMe
from server.aggregation.optimizers import OptimizerState
from server.strategies.replies import Reply
from server.strategies.round import RoundStrategy
from server.strategies.spec import RoundParts, ServerMethod


class PFedMeStrategy(RoundStrategy):
    """pFedMe: w ← (1 − β)w + β·mean w_i."""

    per_step = False

    def __init__(self, options: PFedMe, parts: RoundParts) -> None:
        super().__init__(parts)
        self.beta = options.beta

    def update(self, state: OptimizerState, model: Arrays, replies: list[Reply]) -> tuple[Arrays, OptimizerState]:
        """Return (1 − β)w + β·mean w_i; the mean is not per local step, since each w_i solves a problem."""
        step = mean([reply.train.update for reply in replies], [reply.weight for reply in replies])
        return sub(model, scale(step, self.beta)), state


METHOD = ServerMethod(pfedme.METHOD, PFedMeStrategy)
