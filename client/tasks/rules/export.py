"""Rule recommender as a network with named inputs, for export."""

import numpy as np
import torch
from torch import Tensor, nn

from client.tasks.registry import ExportableNetwork
from common.arrays import Arrays
from common.tasks.rules.vocabulary import RuleCatalogue


class RuleNetwork(nn.Module):
    """Logits of every rule of one home, without dropout."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor, adj: Tensor) -> Tensor:
        """Compute logits, 1 × N × N × R; see `RuleRecommender.forward`."""
        logits: Tensor = self.network(x, adj, torch.ones(()), None)
        return logits


def exportable(network: nn.Module, catalogue: RuleCatalogue) -> ExportableNetwork:
    """Return the network with inputs `x` and `adj`; a size is a number of devices."""
    types = len(catalogue.entities)

    def sample(size: int, rng: np.random.Generator) -> Arrays:
        x = np.eye(types, dtype=np.float32)[rng.integers(types, size=(1, size))]
        adj = rng.integers(3, size=(1, size, size)).astype(np.float32)
        return {"x": x, "adj": adj}

    axes = {"x": {1: "devices"}, "adj": {1: "devices", 2: "devices"}}
    return ExportableNetwork(RuleNetwork(network), axes, sample, "logits")
