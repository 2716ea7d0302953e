"""Default model of the markets task: linear scorer of structural features of a pair of items.

On real data no network came near a count-weighted random walk on the market's graph, and pooling the markets' graphs lowers
the metrics (explore-markets-sessions.md A2-A4). The weights of features do transfer between markets. The scorer starts as the
walk and trains its weights over all markets. Queries without edges, which are new in a market, have separate weights.
"""

import torch
from torch import Tensor, nn

from common.tasks.markets.features import FEATURES

INITIAL_WEIGHTS = {"walk": 1.0, "new_degree": 1.0}
"""Weights before training: the walk, and popularity for new queries."""


class PairScorer(nn.Module):
    """Linear scorer s_ab = Σ_f w_f x_f(a, b), without bias."""

    def __init__(self) -> None:
        super().__init__()
        self.scorer = nn.Linear(len(FEATURES), 1, bias=False)
        with torch.no_grad():
            self.scorer.weight.copy_(torch.tensor([[INITIAL_WEIGHTS.get(name, 0.0) for name in FEATURES]]))

    def forward(self, features: Tensor) -> Tensor:
        """Compute scores … of features … × F."""
        scores: Tensor = self.scorer(features).squeeze(-1)
        return scores
