"""pFedMe on the server (Dinh et al. 2020, Algorithm 1)."""

from typing import Any

from common.algorithms import PFedMe
from common.arrays import Arrays, scale, sub
from server.aggregation.moments import Memory
from server.strategies.replies import Reply, mean_update
from server.strategies.round import RoundStrategy


class PFedMeStrategy(RoundStrategy):
    """w ← (1 − β)w + β·mean w_i."""

    def __init__(self, algorithm: PFedMe, **parts: Any) -> None:
        super().__init__(**parts)
        self.beta = algorithm.beta

    def update(self, memory: Memory, model: Arrays, replies: list[Reply]) -> tuple[Arrays, Memory]:
        """One server step."""
        return sub(model, scale(mean_update(replies), self.beta)), memory
