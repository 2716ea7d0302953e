"""Baseline of `sessions_step`: SR-GNN in the formulation of the authors' public code, re-implemented.

The maths are those of `common.tasks.sessions.model.SRGNN`; the formulation differs. All sessions are padded to the longest
of the whole set, every batch builds each session's graph in a Python loop, nodes return to click order session by session,
and Adam is not fused. Example matrices go through one NumPy array into a tensor.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from common.tasks.sessions.model import GatedGraph
from common.tasks.sessions.vocabulary import Clicks

Slice = tuple[list[list[int]], NDArray[np.float64], list[list[int]], NDArray[np.int64], NDArray[np.int64]]
"""Alias of each click, adjacency E × N × 2N (in, out), nodes, mask E × L, target."""


class ReferenceSessions:
    """Prefixes as padded lists of item + 1, and the next item."""

    def __init__(self, prefixes: Sequence[Clicks], targets: Sequence[int]) -> None:
        longest = max(len(prefix) for prefix in prefixes)
        self._inputs = np.array([[*(prefix + 1).tolist(), *[0] * (longest - len(prefix))] for prefix in prefixes])
        self._mask = np.array([[1] * len(prefix) + [0] * (longest - len(prefix)) for prefix in prefixes])
        self._targets = np.array(targets)

    def slice(self, chosen: NDArray[np.int64]) -> Slice:
        """Return the graphs of the chosen examples."""
        inputs, mask, targets = self._inputs[chosen], self._mask[chosen], self._targets[chosen]
        widest = max(len(np.unique(clicks)) for clicks in inputs)
        nodes, adjacencies, alias = [], [], []
        for clicks in inputs:
            node = np.unique(clicks)
            nodes.append([*node.tolist(), *[0] * (widest - len(node))])
            adjacencies.append(_adjacency(clicks, node, widest))
            alias.append([np.where(node == click)[0][0] for click in clicks])
        return alias, np.array(adjacencies), nodes, mask, targets


def _adjacency(clicks: NDArray[np.int64], node: NDArray[np.int64], widest: int) -> NDArray[np.float64]:
    """Return [A_in ‖ A_out] of one session, N × 2N."""
    links = np.zeros((widest, widest))
    for before, after in pairwise(clicks):
        if after == 0:
            break
        links[np.where(node == before)[0][0]][np.where(node == after)[0][0]] = 1
    columns, rows = np.sum(links, 0), np.sum(links, 1)
    columns[columns == 0] = 1
    rows[rows == 0] = 1
    return np.concatenate([np.divide(links, columns), np.divide(links.T, rows)]).T


class ReferenceSRGNN(nn.Module):
    """SR-GNN over one slice; its parameters have the names of `SRGNN`."""

    def __init__(self, items: int, d: int) -> None:
        super().__init__()
        self.d = d
        self.embedding = nn.Embedding(items + 1, d)
        self.graph = GatedGraph(d)  # the cell is the same in both, its inputs are not
        self.w1, self.w2 = nn.Linear(d, d), nn.Linear(d, d, bias=False)
        self.q, self.w3 = nn.Linear(d, 1, bias=False), nn.Linear(2 * d, d)

    def forward(self, data: Slice) -> Tensor:
        """Return logits of all items, E × V."""
        alias, adjacency, nodes, given_mask, _ = data
        a, mask = torch.tensor(adjacency).float(), torch.tensor(given_mask)
        size = a.shape[1]
        h, cell = self.embedding(torch.tensor(nodes)), self.graph
        before = a[:, :, :size] @ cell.incoming(h) + cell.bias_in
        hidden = cell.update(h, before, a[:, :, size:] @ cell.outgoing(h) + cell.bias_out)
        rows = torch.tensor(np.array(alias))
        clicks = torch.stack([hidden[i][rows[i]] for i in torch.arange(len(rows)).long()])
        last = clicks[torch.arange(len(mask)), torch.sum(mask, 1) - 1]
        q1, q2 = self.w1(last).view(len(last), 1, self.d), self.w2(clicks)
        alpha = self.q(torch.sigmoid(q1 + q2))
        s_g = torch.sum(alpha * clicks * mask.view(len(mask), -1, 1).float(), 1)
        scores: Tensor = self.w3(torch.cat([s_g, last], 1)) @ self.embedding.weight[1:].transpose(1, 0)
        return scores
