"""The default session model: the federated network on top of a person's own history.

On real data a person's own history alone ranks better than any network trained on everybody's sessions. So the scores of
both are added, with a few weights that train along: on sessions that the network does not train on, or else they would
trust it too much.
"""

import torch
from torch import Tensor, nn

FEATURES = ("own_frequency", "own_bigram", "session_recency", "last_item", "shared_rules")
"""What the line knows of an item: log(1 + visits), log(1 + visits right after the last item), .8^(clicks ago) if the session
has it, whether it is the last item, and log(1 + summed sequential rules) where counts are shared; F of them."""

START = 0.5
"""Every weight before training: a usable ranking from the first round on."""


class LocalBlend(nn.Module):
    """logit_j = w₀·network_j + Σ_f (w_f x_jf + u_f [x_jf > 0]), with x the local line's features of item j."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.scale = nn.Parameter(torch.full((1,), START))
        self.weight = nn.Parameter(torch.full((2 * len(FEATURES),), START))

    def forward(self, graph: tuple[Tensor, ...], index: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of all items, by the network alone and blended.

        Args:
            graph: What the network takes; see `SRGNN.forward`.
            index: B × M items that the local line knows something of; padding may name any item.
            value: B × M × F features of those, zero in the padding.

        Returns:
            Two B × V; the blend's gradient stops at the network.
        """
        alone: Tensor = self.network(*graph)
        known = torch.cat([value, (value > 0).to(value.dtype)], dim=-1) @ self.weight
        return alone, (self.scale * alone.detach()).scatter_add(1, index, known)
