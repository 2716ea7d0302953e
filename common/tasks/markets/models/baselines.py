"""Two networks that the markets task's paper compares with, which see no graph: Siamese and SPE (algorithms.md §5.6).

Shapes: width d, embedding k, V items of the catalogue.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, relu


class SiameseTower(nn.Module):
    """Z = W₂ max(0, W₁x + b₁) + b₂ on the unit sphere, one tower for both items of a pair.

    Args:
        width: d.
        embedding: k, of the hidden layer too.
    """

    def __init__(self, width: int, embedding: int) -> None:
        super().__init__()
        layers = {"hidden": nn.Linear(width, embedding), "output": nn.Linear(embedding, embedding)}
        self.tower = nn.ModuleDict(layers)

    def forward(self, x: Tensor) -> Tensor:
        """Of rows of X, … × d -> … × k of norm 1."""
        return normalize(self.tower["output"](relu(self.tower["hidden"](x))), dim=-1)


class SemiParametric(nn.Module):
    """z_a = (1 − δ_a)·xW + δ_a·e_a, δ_a = σ(γ₁ ln(1 + deg a) + γ₂): the more is known of an item, the more its own vector says.

    After SPE (Hu et al. 2019), where an item's statistics weigh its parametric part, of content, against its own vector e; its
    autoencoder and loss are left out, the loss is BPR as of the other networks. All e start at zero. `ids` belongs to the
    client alone (`common.private_layers.own_of`): the rows that have moved would tell what a market sells.

    Args:
        width: d.
        embedding: k.
        items: V.
    """

    def __init__(self, width: int, embedding: int, items: int) -> None:
        super().__init__()
        self.phi = nn.Parameter(nn.init.xavier_uniform_(torch.empty(width, embedding)))
        self.gamma = nn.Parameter(torch.tensor([1.0, -2.0]))
        self.theta = nn.Parameter(torch.tensor([1.0, 0.0]))
        self.ids = nn.Parameter(torch.zeros(items, embedding))

    def forward(self, x: Tensor, items: Tensor, degrees: Tensor) -> Tensor:
        """Of rows of X, … × d, of the items of those catalogue numbers and degrees, … -> … × k."""
        delta = torch.sigmoid(self.gamma[0] * degrees.log1p() + self.gamma[1]).unsqueeze(-1)
        mixed: Tensor = (1 - delta) * (x @ self.phi) + delta * self.ids[items]
        return mixed
