"""PF-GNN and PF-GNN+ on the server (algorithms.md §5.3, Algorithm 1); mirror of `client/trainers/pfgnn.py`."""

from common.arrays import Arrays, mean, scale, sub
from common.methods import pfgnn
from common.methods.pfgnn import PFGNN
from server.aggregation.optimizers import OptimizerState
from server.strategies.replies import Reply
from server.strategies.round import RoundStrategy
from server.strategies.spec import RoundParts, ServerMethod


class PFGNNStrategy(RoundStrategy):
    """φ ← (1 − β)φ + β·mean φ_i, and so ξ; with the clients' solutions fixed, a step along the gradient of Eq 14.

    A market's θ, α and κ stay at the values that newcomers start from.
    """

    def __init__(self, algorithm: PFGNN, parts: RoundParts) -> None:
        super().__init__(parts)
        self.algorithm = algorithm

    def update(self, memory: OptimizerState, model: Arrays, replies: list[Reply]) -> tuple[Arrays, OptimizerState]:
        """One server step; the mean is not taken per local step, since each reply is a solution of its own."""
        step = mean([reply.train.update for reply in replies], [reply.weight for reply in replies])
        damped = scale(step, self.algorithm.beta)
        if "xi" in step and not model["xi"].any():
            damped["xi"] = step["xi"]  # the first summaries ever: there is nothing to hold on to
        return {**model, **sub({name: model[name] for name in step}, damped)}, memory


METHOD = ServerMethod(pfgnn.METHOD, PFGNNStrategy)
