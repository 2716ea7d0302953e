"""pFedMe (Dinh et al. 2020, Algorithm 1)."""

from common.arrays import Arrays, scale, sub
from common.contribution import Contribution
from common.methods import pfedme
from common.methods.pfedme import PFedMe as PFedMeOptions
from server.round.method import Groups, Method, RoundContext, ServerMethod


class PFedMe(Method):
    """pFedMe: w ← (1 − β)w + β·mean w_i."""

    def __init__(self, options: PFedMeOptions) -> None:
        self.beta = options.beta

    def update(self, at: RoundContext, state: Groups, model: Arrays, total: Contribution) -> tuple[Arrays, Groups]:
        """Return (1 − β)w + β·mean w_i; the mean is not per local step, since each w_i solves a problem."""
        return sub(model, scale(total.mean_update(), self.beta)), state


METHOD = ServerMethod(pfedme.METHOD, PFedMe)
