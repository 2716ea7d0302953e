"""Server side of pFedMe (Dinh et al. 2020, Algorithm 1) and of Per-FedAvg, which takes the mean."""

from common.api import Arrays, scale, sub
from fedloom_personalization import options as specs
from server.api import Collected, MeanStrategy, OptimizerState, RoundParts, RoundStrategy, ServerMethod


class PFedMeStrategy(RoundStrategy):
    """pFedMe: w ← (1 − β)w + β·mean w_i."""

    def __init__(self, options: specs.PFedMe, parts: RoundParts) -> None:
        super().__init__(parts)
        self.beta = options.beta

    def update(self, state: OptimizerState, model: Arrays, collected: Collected) -> tuple[Arrays, OptimizerState]:
        """Return (1 − β)w + β·mean w_i; the mean is not per local step, since each w_i solves a problem."""
        return sub(model, scale(collected.mean_update(), self.beta)), state


PFEDME = ServerMethod(specs.PFEDME, PFedMeStrategy)
PERFEDAVG = ServerMethod(specs.PERFEDAVG, MeanStrategy)
