"""Session networks with named inputs, for export."""

from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from client.tasks.registry import ExportableNetwork
from client.tasks.sessions.data.visitors import graph_arrays
from common.arrays import Arrays
from common.tasks.sessions import slist
from common.tasks.sessions.slist import FEATURES

AXES = {
    "nodes": {0: "nodes"},
    "edges": {1: "edges"},
    "w_in": {0: "edges"},
    "w_out": {0: "edges"},
    "clicks": {0: "clicks"},
    "owner": {0: "clicks"},
    "last": dict[int, str](),
}
"""Inputs of the networks for one session, and their variable sizes."""

HISTORY_AXES = {"index": {1: "history"}, "value": {1: "history"}}
"""Further inputs of the default model."""


class SessionNetwork(nn.Module):
    """Network of the paper for one session; its own part `graph` may not be that of an exported root."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(
        self, nodes: Tensor, edges: Tensor, w_in: Tensor, w_out: Tensor, clicks: Tensor, owner: Tensor, last: Tensor
    ) -> Tensor:
        """Compute logits, 1 × V; see `SRGNN.forward`."""
        logits: Tensor = self.network(nodes, edges, w_in, w_out, clicks, owner, last)
        return logits


class BlendNetwork(SessionNetwork):
    """Default model for one session, with features of the visitor's history."""

    def forward(  # type: ignore[override]  # other inputs
        self,
        nodes: Tensor,
        edges: Tensor,
        w_in: Tensor,
        w_out: Tensor,
        clicks: Tensor,
        owner: Tensor,
        last: Tensor,
        index: Tensor,
        value: Tensor,
    ) -> Tensor:
        """Compute blended logits, 1 × V; see `LocalBlend.forward`."""
        blended: Tensor = self.network((nodes, edges, w_in, w_out, clicks, owner, last), index, value)[1]
        return blended


class ClosedFormNetwork(nn.Module):
    """Closed form for one session: logs of weighted features, of which the last come from the solved rows."""

    def __init__(self, solved: Arrays) -> None:
        super().__init__()
        weights = slist.feature_weights(solved[slist.CHOICE][3:].tolist()).astype(np.float32)
        shares = (slist.share_scores(solved) + slist.FLOOR).astype(np.float32)
        self.weights, self.shares = nn.Buffer(torch.from_numpy(weights)), nn.Buffer(torch.from_numpy(shares))

    def forward(self, index: Tensor, value: Tensor) -> Tensor:
        """Compute logits, 1 × V; see `slist.logits`."""
        scores = self.shares.unsqueeze(0).scatter_add(1, index, value @ self.weights)
        return torch.log(scores.clamp(min=slist.FLOOR))


def exportable_rows(solved: Arrays, items: int) -> ExportableNetwork:
    """Return the closed form with the features of one session as inputs; a size is a number of items."""
    return ExportableNetwork(ClosedFormNetwork(solved), HISTORY_AXES, partial(sample_history, items), "logits")


def sample_history(items: int, size: int, rng: np.random.Generator) -> Arrays:
    """Return random features of up to `size` + 1 items."""
    index = rng.permutation(items)[None, : size + 1]
    value = rng.exponential(size=(*index.shape, len(FEATURES))) * (rng.random((*index.shape, len(FEATURES))) < 0.5)
    return {"index": index, "value": value.astype(np.float32)}


def exportable(network: nn.Module, items: int, max_length: int, *, paper: bool) -> ExportableNetwork:
    """Return the network with the inputs of one session; a size is a number of clicks."""

    def sample(size: int, rng: np.random.Generator) -> Arrays:
        graph = graph_arrays([rng.integers(items, size=size)], max_length)
        if paper:
            return graph
        return {**graph, **sample_history(items, size, rng)}

    if paper:
        return ExportableNetwork(SessionNetwork(network), AXES, sample, "logits")
    return ExportableNetwork(BlendNetwork(network), {**AXES, **HISTORY_AXES}, sample, "logits")
