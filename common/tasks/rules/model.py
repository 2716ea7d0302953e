"""Rule recommenders: a graph encoder of a home's devices and a decoder of ordered pairs of devices.

Graphs are dense and padded: H homes, N devices each, F device types, R trigger-action relations. `forward` returns logits;
probabilities are their sigmoid (Eq 1).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import cast

import torch
from torch import Tensor, nn

from common.tasks.rules.options import RulesOptions


class DenseSAGEConv(nn.Module):
    """GraphSAGE layer of padded graphs, x·W_root + b + mean of in-neighbours·W_rel.

    It equals PyTorch Geometric's, which the paper's model takes, and whose import takes 90 MB and two seconds.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.lin_rel, self.lin_root = nn.Linear(inputs, outputs, bias=False), nn.Linear(inputs, outputs)
        self.lin_rel.reset_parameters()  # draws as often as PyTorch Geometric, so that a seed gives the same model
        self.lin_root.reset_parameters()

    def forward(self, x: Tensor, adj: Tensor) -> Tensor:
        """Embed nodes; see `Encoder.forward` for the shapes."""
        mean = torch.matmul(adj, x) / adj.sum(dim=-1, keepdim=True).clamp(min=1)
        combined: Tensor = self.lin_rel(mean) + self.lin_root(x)
        return combined


class Encoder(nn.Module):
    """Two GraphSAGE layers with mean aggregation over in-edges: H' = H·W_self + mean_{u→v}(H_u)·W_nei + b.

    Dropout comes before the ReLU and weights start from Glorot's distribution with gain √2, as in the authors' code. PyG's
    default start is three times smaller and halves the improvement of 100 rounds. The dropout mask is an argument.
    """

    def __init__(self, entities: int, hidden: int, *, paper: bool = False) -> None:
        super().__init__()
        layer = _paper_layer() if paper else DenseSAGEConv
        self.first, self.second = layer(entities, hidden), layer(hidden, hidden)
        for linear in (layer for conv in (self.first, self.second) for layer in (conv.lin_rel, conv.lin_root)):
            nn.init.xavier_uniform_(linear.weight, gain=nn.init.calculate_gain("relu"))
        nn.init.zeros_(self.first.lin_root.bias)
        nn.init.zeros_(self.second.lin_root.bias)

    def forward(self, x: Tensor, adj: Tensor, keep: Tensor) -> Tensor:
        """Embed devices.

        Args:
            x: One-hot device types, H × N × F.
            adj: Number of training rules u → v as `adj[h, v, u]`, H × N × N.
            keep: Dropout mask divided by the probability of keeping, broadcastable to H × N × hidden.

        Returns:
            Embeddings, H × N × hidden.
        """
        hidden = torch.relu(self.first(x, adj) * keep)
        embedded: Tensor = self.second(hidden, adj)
        return embedded


def _paper_layer() -> type[DenseSAGEConv]:
    """Return PyTorch Geometric's layer, which has the same parts."""
    from torch_geometric import nn as geometric

    return cast(type[DenseSAGEConv], geometric.DenseSAGEConv)


class PairPredictor(nn.Module):
    """The paper's decoder: p_ij = σ(W₂ relu(W₁[z_i‖z_j] + b₁) + b₂)."""

    def __init__(self, hidden: int, width: int, relations: int) -> None:
        super().__init__()
        self.first = nn.Linear(2 * hidden, width)
        self.second = nn.Linear(width, relations)

    def forward(self, z: Tensor, x: Tensor, triples: Tensor | None) -> Tensor:
        """Compute logits of triples, or of every rule; see `RuleRecommender.forward`."""
        if triples is None:
            logits: Tensor = self.second(torch.relu(self._every_pair(z)))
            return logits
        i, j, r = triples.unbind(-1)
        hidden = torch.relu(self.first(torch.cat([_rows(z, i), _rows(z, j)], dim=-1)))
        return (hidden * self.second.weight[r]).sum(-1) + self.second.bias[r]

    def last(self) -> Iterator[nn.Parameter]:
        """Iterate over the parameters of the last layer."""
        return self.second.parameters()

    def _every_pair(self, z: Tensor) -> Tensor:
        """Compute W₁[z_i‖z_j] + b₁ of all pairs, H × N × N × width; W₁'s halves act once per device."""
        as_trigger, as_action = self.first.weight.chunk(2, dim=1)
        return (z @ as_trigger.T).unsqueeze(-2) + (z @ as_action.T + self.first.bias).unsqueeze(-3)


class AdditivePredictor(nn.Module):
    """Additive decoder: logit_ijr = w_r·[z_i‖z_j] + b_r + T₁[type_i, r] + T₂[type_j, r].

    T₁ and T₂ score device types; w_r scores the home's graph.
    """

    def __init__(self, hidden: int, entities: int, relations: int) -> None:
        super().__init__()
        self.trigger = nn.Linear(hidden, relations)
        self.action = nn.Linear(hidden, relations, bias=False)
        self.trigger_type = nn.Linear(entities, relations, bias=False)
        self.action_type = nn.Linear(entities, relations, bias=False)
        nn.init.zeros_(self.trigger_type.weight)
        nn.init.zeros_(self.action_type.weight)

    def forward(self, z: Tensor, x: Tensor, triples: Tensor | None) -> Tensor:
        """Compute logits of triples, or of every rule; see `RuleRecommender.forward`."""
        return _combine(self.trigger(z) + self.trigger_type(x), self.action(z) + self.action_type(x), triples)

    def last(self) -> Iterator[nn.Parameter]:
        """Iterate over the parameters of the last layer."""
        return self.parameters()


class RuleRecommender(nn.Module):
    """Encoder and decoder: P((i, j, r) ∈ E_k | θ, φ; G_k) as logits.

    On top of a closed form, whose log-odds are added to them, the logits are zero before training.
    """

    def __init__(
        self, entities: int, relations: int, options: RulesOptions, *, paper: bool, on_top: bool = False
    ) -> None:
        super().__init__()
        self.encoder = Encoder(entities, options.hidden, paper=paper)
        self.predictor: PairPredictor | AdditivePredictor
        if paper:
            self.predictor = PairPredictor(options.hidden, options.pred_hidden or relations, relations)
        else:
            self.predictor = AdditivePredictor(options.hidden, entities, relations)
        for parameter in self.predictor.last() if on_top else ():
            nn.init.zeros_(parameter)

    def forward(self, x: Tensor, adj: Tensor, keep: Tensor, triples: Tensor | None) -> Tensor:
        """Compute logits of rules.

        Args:
            x: One-hot device types, H × N × F.
            adj: In-edges of the training graph, H × N × N.
            keep: Dropout mask (see `Encoder`).
            triples: Rules (trigger device, action device, relation), H × E × 3; None: every possible rule.

        Returns:
            Logits, H × E or H × N × N × R.
        """
        logits: Tensor = self.predictor(self.encoder(x, adj, keep), x, triples)
        return logits


def stacked_logits(
    x: Tensor, adj: Tensor, triples: Tensor, relations: int
) -> Callable[[Mapping[str, Tensor], Tensor], Tensor]:
    """Return K clients' logits of triples by `AdditivePredictor`, of parameters and dropout masks.

    They equal `RuleRecommender.forward` up to rounding. The means of neighbours' types, degrees and places of triples are
    computed once, since no step changes them. Results are K × (H·E), parameters K × ….

    Args:
        x: One-hot device types, K × H × N × F.
        adj: In-edges of the training graphs, K × H × N × N.
        triples: Rules (trigger device, action device, relation), K × H × E × 3.
        relations: Number of relations in the parameters.
    """
    homes, nodes = x.shape[1:3]
    means = (adj / adj.sum(-1, keepdim=True).clamp(min=1)).flatten(0, 1)
    types, devices = x.flatten(1, 2), torch.arange(homes, device=x.device)[:, None] * nodes
    trigger, action = (((devices + triples[..., side]) * relations + triples[..., 2]).flatten(1) for side in (0, 1))

    def mean(rows: Tensor) -> Tensor:
        return torch.bmm(means, rows.reshape(len(means), nodes, -1)).reshape_as(rows)

    neighbours = mean(types)

    def logits(params: Mapping[str, Tensor], keep: Tensor) -> Tensor:
        def linear(layer: str, rows: Tensor) -> Tensor:
            weight, bias = params[f"{layer}.weight"].mT, params.get(f"{layer}.bias")
            return torch.bmm(rows, weight) if bias is None else torch.baddbmm(bias.unsqueeze(1), rows, weight)

        first = linear("encoder.first.lin_rel", neighbours) + linear("encoder.first.lin_root", types)
        hidden = torch.relu(first * keep.flatten(1, 2))
        z = linear("encoder.second.lin_rel", mean(hidden)) + linear("encoder.second.lin_root", hidden)
        as_trigger = linear("predictor.trigger", z) + linear("predictor.trigger_type", types)
        as_action = linear("predictor.action", z) + linear("predictor.action_type", types)
        return as_trigger.flatten(1).gather(1, trigger) + as_action.flatten(1).gather(1, action)

    return logits


def _combine(as_trigger: Tensor, as_action: Tensor, triples: Tensor | None) -> Tensor:
    """Compute as_trigger[i, r] + as_action[j, r] of triples (i, j, r), or of all; both inputs H × N × R."""
    if triples is None:
        return as_trigger.unsqueeze(-2) + as_action.unsqueeze(-3)
    i, j, r = triples.unbind(-1)
    relations = as_trigger.shape[-1]
    flat_trigger, flat_action = as_trigger.flatten(-2), as_action.flatten(-2)
    return flat_trigger.gather(-1, i * relations + r) + flat_action.gather(-1, j * relations + r)


def _rows(rows: Tensor, index: Tensor) -> Tensor:
    """Return rows of each home by index: H × N × D and H × E give H × E × D."""
    return torch.take_along_dim(rows, index.unsqueeze(-1), dim=-2)
