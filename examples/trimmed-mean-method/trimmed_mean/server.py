"""Server side of the trimmed mean."""

import numpy as np

from common.api import Arrays, sub
from server.api import Collected, OptimizerState, RoundParts, RoundStrategy, ServerMethod
from trimmed_mean.spec import METHOD as SPEC
from trimmed_mean.spec import TrimmedMean


class TrimmedMeanStrategy(RoundStrategy):
    """θ ← θ − trimmed mean of Δ_k."""

    def __init__(self, options: TrimmedMean, parts: RoundParts) -> None:
        super().__init__(parts)
        self.beta = options.beta

    def update(self, state: OptimizerState, model: Arrays, collected: Collected) -> tuple[Arrays, OptimizerState]:
        """Take one server step."""
        replies = collected.replies
        cut = int(self.beta * len(replies))
        step: Arrays = {}
        for name in model:
            values = np.sort(np.stack([reply.train.update[name] for reply in replies]), axis=0)
            step[name] = values[cut : len(values) - cut].mean(axis=0, dtype=np.float64).astype(values.dtype)
        return sub(model, step), state


METHOD = ServerMethod(SPEC, TrimmedMeanStrategy)
