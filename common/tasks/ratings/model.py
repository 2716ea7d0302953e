"""Recommenders of products from ratings in [0, 1]: the paper's graph attention, and item scores under local privacy."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from common.tasks.ratings.options import RatingsOptions

NEGATIVE_SLOPE = 0.2
"""Of the leaky ReLU in attention (Veličković et al. 2018, Eq 3)."""


class StarAttention(nn.Module):
    """The paper's model: one graph attention layer of one head on a person's star graph (algorithms.md §4.7).

    h = b + Σ_j α_j W e_j over the rated products and the person, who is e_0, with α = softmax_j LeakyReLU(lᵀWe_j + rᵀWe_0);
    the rating of product i is σ(h·e_i). `user`, e_0, belongs to the client alone (`common.private_layers.own_of`).
    """

    def __init__(self, items: int, options: RatingsOptions) -> None:
        super().__init__()
        d = options.width
        self.user = nn.Parameter(options.embedding_std * torch.randn(d))
        self.items = nn.Parameter(options.embedding_std * torch.randn(items, d))
        self.weight = nn.Parameter(nn.init.xavier_normal_(torch.empty(d, d), gain=math.sqrt(2)))
        self.left = nn.Parameter(nn.init.xavier_normal_(torch.empty(1, d), gain=math.sqrt(2))[0])
        self.right = nn.Parameter(nn.init.xavier_normal_(torch.empty(1, d), gain=math.sqrt(2))[0])
        self.bias = nn.Parameter(torch.zeros(d))

    def forward(self, index: Tensor, mask: Tensor, asked: Tensor) -> Tensor:
        """Predicted ratings, shares of the scale.

        Args:
            index: Products that U people rated, U × M; padding may name any.
            mask: 1 for those, 0 for padding, U × M.
            asked: Products to predict, U × Q.

        Returns:
            U × Q.
        """
        leaves, user = self.items[index] @ self.weight.T, self.weight @ self.user
        nodes = torch.cat([user.expand(len(index), 1, -1), leaves], dim=1)
        present = torch.cat([torch.ones_like(mask[:, :1]), mask], dim=1)
        strength = leaky_relu(nodes @ self.left + user @ self.right, NEGATIVE_SLOPE)
        alpha = torch.softmax(strength.masked_fill(present == 0, -torch.inf), dim=1)
        h = (alpha.unsqueeze(-1) * nodes).sum(1) + self.bias
        return torch.sigmoid((self.items[asked] * h.unsqueeze(1)).sum(-1))


class ItemScores(nn.Module):
    """The default: a score for each product, the sum of what clients report of it; all else stays with the client.

    The loss is −⟨scores, x⟩, so that a step of rate 1 uploads the report −x as it is: a vector that any mechanism can
    release, and that does not depend on the scores.
    """

    def __init__(self, items: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(items))

    def forward(self, report: Tensor) -> Tensor:
        """−⟨scores, x⟩, a scalar, from a report of length I."""
        return -(self.scores @ report)


def build_rating_model(items: int, options: RatingsOptions, *, paper: bool) -> nn.Module:
    """The paper's model or the default one."""
    return StarAttention(items, options) if paper else ItemScores(items)
