"""The default model of the markets task: a federated scorer of a few structural numbers of a pair of items.

On real data no network came near a count-weighted random walk on the market's own graph, and pooling the markets' graphs
hurts (explore-markets-sessions.md A2-A4). What does carry over from market to market is how to weigh such evidence. So
the scorer starts as the walk and learns, over all markets, what else an item that goes with another shows; it learns apart
what speaks for an item that is new in a market and has no edge to walk on.
"""

import torch
from torch import Tensor, nn

KNOWN = ("walk", "far_walk", "common", "rare_common", "overlap", "degree", "strength", "text", "elsewhere")
"""Of candidate b for query a that has neighbours: the count-weighted walk of two hops and of three; common neighbours, and
those by 1/log degree (Adamic-Adar); the share of neighbours in common (cosine); b's degree and strength; likeness of the
texts; users of the pair in other markets, where counts are shared."""

NEW = ("new_degree", "new_text", "new_elsewhere", "new_degree_elsewhere", "new_detour")
"""Of candidate b for query a that is new here: b's degree; likeness of the texts; and of other markets users of the pair,
b's degree, and a walk of one hop there and one here."""

FEATURES = KNOWN + NEW
"""F numbers, of which one group or the other is zero."""

START = {"walk": 1.0, "new_degree": 1.0}
"""Weights before training: the walk, and popularity for what is new."""


class PairScorer(nn.Module):
    """s_ab = Σ_f w_f x_f(a, b): linear, so that its weights can be read; no bias, which ranks nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.scorer = nn.Linear(len(FEATURES), 1, bias=False)
        with torch.no_grad():
            self.scorer.weight.copy_(torch.tensor([[START.get(name, 0.0) for name in FEATURES]]))

    def forward(self, features: Tensor) -> Tensor:
        """Scores … of features … × F."""
        scores: Tensor = self.scorer(features).squeeze(-1)
        return scores
