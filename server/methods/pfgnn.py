"""PF-GNN and PF-GNN+ (algorithms.md §5.3, Algorithm 1)."""

from common.arrays import Arrays, scale, sub
from common.contribution import Contribution
from common.methods import pfgnn
from server.round.method import Groups, Method, RoundContext, ServerMethod


class PFGNN(Method):
    """PF-GNN+: φ ← (1 − β)φ + β·mean φ_i, and ξ likewise.

    With the clients' solutions fixed, this is a step along the gradient of Eq 14. θ, α and κ of the server keep their initial
    values, for new clients.
    """

    def __init__(self, options: pfgnn.PFGNN) -> None:
        self.beta = options.beta

    def update(self, at: RoundContext, state: Groups, model: Arrays, total: Contribution) -> tuple[Arrays, Groups]:
        """Return φ and ξ; the mean is not per local step, since each φ_i, ξ_i solves a problem."""
        step = total.mean_update()
        damped = scale(step, self.beta)
        if "xi" in step and not model["xi"].any():
            damped["xi"] = step["xi"]  # the first summary is not damped: the initial ξ = 0 has no meaning
        return {**model, **sub({name: model[name] for name in step}, damped)}, state


METHOD = ServerMethod(pfgnn.METHOD, PFGNN)
