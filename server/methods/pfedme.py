"""Strategy of pFedMe (Dinh et al. 2020, Algorithm 1)."""

from common.arrays import Arrays, scale, sub
from common.methods import pfedme
from common.methods.pfedme import PFedMe
from server.aggregation.optimizers import OptimizerState
from server.aggregation.results import Collected
from server.round.method import RoundParts, ServerMethod
from server.round.round import RoundStrategy


class PFedMeStrategy(RoundStrategy):
    """pFedMe: w ← (1 − β)w + β·mean w_i."""

    def __init__(self, options: PFedMe, parts: RoundParts) -> None:
        super().__init__(parts)
        self.beta = options.beta

    def update(self, state: OptimizerState, model: Arrays, collected: Collected) -> tuple[Arrays, OptimizerState]:
        """Return (1 − β)w + β·mean w_i; the mean is not per local step, since each w_i solves a problem."""
        return sub(model, scale(collected.mean_update(), self.beta)), state


METHOD = ServerMethod(pfedme.METHOD, PFedMeStrategy)
