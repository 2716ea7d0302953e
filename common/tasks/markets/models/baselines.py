"""Baseline networks of the markets paper without graph: Siamese and SPE (algorithms.md §5.6).

Shapes: width d, embedding k, V items of the catalogue.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, relu


class SiameseTower(nn.Module):
    """Siamese tower Z = W₂ max(0, W₁x + b₁) + b₂ on the unit sphere, shared by both items of a pair.

    Args:
        width: Width d of the features.
        embedding: Width k of embedding and hidden layer.
    """

    def __init__(self, width: int, embedding: int) -> None:
        super().__init__()
        layers = {"hidden": nn.Linear(width, embedding), "output": nn.Linear(embedding, embedding)}
        self.tower = nn.ModuleDict(layers)

    def forward(self, x: Tensor) -> Tensor:
        """Embed rows of X, … × d -> … × k of norm 1."""
        return normalize(self.tower["output"](relu(self.tower["hidden"](x))), dim=-1)


class SemiParametric(nn.Module):
    """SPE network z_a = (1 − δ_a)·xW + δ_a·e_a with δ_a = σ(γ₁ ln(1 + deg a) + γ₂).

    After SPE (Hu et al. 2019): an item's degree weighs its content features against its own vector e. Deviations: no
    autoencoder, and BPR loss as for the other networks. All e start at zero. The parameter `ids` (the vectors e) never leaves
    the client; its changed rows would reveal the market's items.

    Args:
        width: Width d of the features.
        embedding: Width k of the embedding.
        items: Number V of items.
    """

    def __init__(self, width: int, embedding: int, items: int) -> None:
        super().__init__()
        self.phi = nn.Parameter(nn.init.xavier_uniform_(torch.empty(width, embedding)))
        self.gamma = nn.Parameter(torch.tensor([1.0, -2.0]))
        self.theta = nn.Parameter(torch.tensor([1.0, 0.0]))
        self.ids = nn.Parameter(torch.zeros(items, embedding))

    def forward(self, x: Tensor, items: Tensor, degrees: Tensor) -> Tensor:
        """Embed rows of X, … × d, of items with those catalogue indices and degrees, … -> … × k."""
        delta = torch.sigmoid(self.gamma[0] * degrees.log1p() + self.gamma[1]).unsqueeze(-1)
        mixed: Tensor = (1 - delta) * (x @ self.phi) + delta * self.ids[items]
        return mixed
