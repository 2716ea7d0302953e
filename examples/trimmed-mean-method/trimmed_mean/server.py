"""Server side of the trimmed mean."""

import numpy as np

from common.api import Arrays, sub
from server.api import Contribution, Groups, Method, RoundContext, ServerMethod
from trimmed_mean.spec import METHOD as SPEC
from trimmed_mean.spec import TrimmedMean


class Trim(Method):
    """θ ← θ − trimmed mean of Δ_k."""

    def __init__(self, options: TrimmedMean) -> None:
        self.beta = options.beta

    def update(self, at: RoundContext, state: Groups, model: Arrays, total: Contribution) -> tuple[Arrays, Groups]:
        """Return the model after one server step; the method has no state."""
        updates = [reply.update for reply in total.replies]
        cut = int(self.beta * len(updates))
        step: Arrays = {}
        for name in model:
            values = np.sort(np.stack([update[name] for update in updates]), axis=0)
            step[name] = values[cut : len(values) - cut].mean(axis=0, dtype=np.float64).astype(values.dtype)
        return sub(model, step), state


METHOD = ServerMethod(SPEC, Trim)
