"""Server side of pFedMe (Dinh et al. 2020, Algorithm 1) and of Per-FedAvg, which takes the mean."""

from common.api import Arrays, scale, sub
from fedloom_personalization import options as specs
from server.api import Contribution, Groups, Mean, Method, RoundContext, ServerMethod


class PFedMe(Method):
    """pFedMe: w ← (1 − β)w + β·mean w_i."""

    def __init__(self, options: specs.PFedMe) -> None:
        self.beta = options.beta

    def update(self, at: RoundContext, state: Groups, model: Arrays, total: Contribution) -> tuple[Arrays, Groups]:
        """Return (1 − β)w + β·mean w_i; the mean is not per local step, since each w_i solves a problem."""
        return sub(model, scale(total.mean_update(), self.beta)), state


PFEDME = ServerMethod(specs.PFEDME, PFedMe)
PERFEDAVG = ServerMethod(specs.PERFEDAVG, Mean)
