"""Rating models: the paper's graph attention, and item scores for local differential privacy."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from common.tasks.ratings.options import RatingsOptions

NEGATIVE_SLOPE = 0.2
"""Slope of the leaky ReLU in attention (Veličković et al. 2018, Eq 3)."""


class StarAttention(nn.Module):
    """Paper's model: one graph attention layer of one head on a rater's star graph (algorithms.md §4.7).

    h = b + Σ_j α_j W e_j over the rated products and the rater e_0, with α = softmax_j LeakyReLU(lᵀWe_j + rᵀWe_0). The rating
    of product i is σ(h·e_i). The parameter `user` is e_0 and never leaves the client. On top of a closed form, whose
    rating is added to σ(h·e_i) − ½, all e_i are 0 before training.
    """

    def __init__(self, items: int, options: RatingsOptions, *, on_top: bool = False) -> None:
        super().__init__()
        d = options.width
        self.user = nn.Parameter(options.embedding_std * torch.randn(d))
        self.items = nn.Parameter(options.embedding_std * (torch.zeros if on_top else torch.randn)(items, d))
        self.weight = nn.Parameter(nn.init.xavier_normal_(torch.empty(d, d), gain=math.sqrt(2)))
        self.left = nn.Parameter(nn.init.xavier_normal_(torch.empty(1, d), gain=math.sqrt(2))[0])
        self.right = nn.Parameter(nn.init.xavier_normal_(torch.empty(1, d), gain=math.sqrt(2))[0])
        self.bias = nn.Parameter(torch.zeros(d))

    def forward(self, index: Tensor, mask: Tensor, queries: Tensor) -> Tensor:
        """Predict ratings as shares of the scale.

        Args:
            index: Products rated by U raters, U × M; any product for padding.
            mask: 1 for rated products and 0 for padding, U × M.
            queries: Products to predict, U × Q.

        Returns:
            Ratings, U × Q.
        """
        leaves, user = self.items[index] @ self.weight.T, self.weight @ self.user
        nodes = torch.cat([user.expand(len(index), 1, -1), leaves], dim=1)
        present = torch.cat([torch.ones_like(mask[:, :1]), mask], dim=1)
        strength = leaky_relu(nodes @ self.left + user @ self.right, NEGATIVE_SLOPE)
        alpha = torch.softmax(strength.masked_fill(present == 0, -torch.inf), dim=1)
        h = (alpha.unsqueeze(-1) * nodes).sum(1) + self.bias
        return torch.sigmoid((self.items[queries] * h.unsqueeze(1)).sum(-1))


class ItemScores(nn.Module):
    """Default model: one score per product, the sum of the clients' reports x.

    The loss is −⟨scores, x⟩. The update of one step of rate 1 is the report itself. Any mechanism can release this vector. It
    does not depend on the scores. The rest of the predictor stays with the client.
    """

    def __init__(self, items: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(items))

    def forward(self, report: Tensor) -> Tensor:
        """Compute −⟨scores, x⟩, a scalar, of a report of length I."""
        return -(self.scores @ report)
