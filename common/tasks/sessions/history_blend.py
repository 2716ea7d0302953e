"""Default session model: federated network blended with features of the visitor's own history.

On real data the visitor's own history ranks better than any network trained on all clients' sessions. The model adds both
scores with trained weights. The weights train on sessions that the network does not train on; otherwise the network's
weight is overestimated.
"""

import torch
from torch import Tensor, nn

from common.tasks.sessions.features import FEATURES

INITIAL_WEIGHT = 0.5
"""Initial value of every weight; gives a usable ranking before training."""


class LocalBlend(nn.Module):
    """Blend of network and history: logit_j = w₀·network_j + Σ_f (w_f x_jf + u_f [x_jf > 0]).

    x_j are the history features of item j.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.scale = nn.Parameter(torch.full((1,), INITIAL_WEIGHT))
        self.weight = nn.Parameter(torch.full((2 * len(FEATURES),), INITIAL_WEIGHT))

    def forward(self, graph: tuple[Tensor, ...], index: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Compute logits of all items by the network alone, and blended.

        Args:
            graph: Arguments of the network; see `SRGNN.forward`.
            index: Items with history features, B × M; any item for padding.
            value: Features of those items, B × M × F; zero for padding.

        Returns:
            Two tensors, B × V; the gradient of the blend stops at the network.
        """
        network: Tensor = self.network(*graph)
        return network, blend(self.scale, self.weight, network.detach(), index, value)


def blend(scale: Tensor, weight: Tensor, network: Tensor, index: Tensor, value: Tensor) -> Tensor:
    """Return the network's scores times w₀ plus weighted history features; see `LocalBlend`."""
    history = torch.cat([value, (value > 0).to(value.dtype)], dim=-1) @ weight
    return (scale * network).scatter_add(1, index, history)
