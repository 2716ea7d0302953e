"""Network: two layers of `SAGEConv`, and logits of pairs of devices by embeddings and types."""

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv


class Sage(nn.Module):
    """Encoder and decoder: logit_r of devices i → j is w_r·[z_i ‖ z_j ‖ x_i ‖ x_j] + b_r."""

    def __init__(self, types: int, relations: int, hidden: int = 16) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(types, hidden), SAGEConv(hidden, hidden)
        self.decoder = nn.Linear(2 * (hidden + types), relations)

    def forward(self, data: Data) -> Tensor:
        """Compute the logits of every relation for each pair in `data.edge_label_index`, P × R."""
        hidden = torch.dropout(self.first(data.x, data.edge_index).relu(), 0.5, self.training)
        z = torch.cat([self.second(hidden, data.edge_index), data.x], dim=-1)
        i, j = data.edge_label_index
        logits: Tensor = self.decoder(torch.cat([z[i], z[j]], dim=-1))
        return logits
