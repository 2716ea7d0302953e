"""Examples (clicks so far -> next click) as one graph of many parts (algorithms.md §2.5–2.6)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from client.tasks.sessions.data.graph_arrays import GRAPH as GRAPH
from client.tasks.sessions.data.graph_arrays import graph_arrays
from common.tasks.sessions.vocabulary import Clicks


@dataclass(frozen=True)
class ExampleBatch:
    """Batch of E examples with N clicks, K edges and M − 1 distinct items of examples."""

    nodes: Tensor
    """A padding node, then the distinct items of each example as rows of the embedding (item + 1), M."""
    edges: Tensor
    """From node to node, 2 × K: one edge for an example's pair of items, however often they follow."""
    w_in: Tensor
    """A_in = (M D_col⁻¹)ᵀ at each edge, K."""
    w_out: Tensor
    """A_out = D_row⁻¹ M at each edge, K."""
    clicks: Tensor
    """Node of each click, example after example, N."""
    owner: Tensor
    """Its example, from 1, N; 0 where clicks are padded to another client's."""
    last: Tensor
    """Node of each example's last click, E; the padding node of one without clicks."""
    target: Tensor
    """The next item, E."""
    weights: Tensor
    """1, and 0 where a client's examples are padded to another's, E."""

    @property
    def graph(self) -> tuple[Tensor, ...]:
        """Arrays that `GRAPH` names."""
        return tuple(getattr(self, name) for name in GRAPH)


def collate(prefixes: Sequence[Clicks], targets: Sequence[int], max_length: int) -> ExampleBatch:
    """Return the graphs of all examples; of a longer prefix, the last `max_length` clicks count."""
    arrays = graph_arrays(prefixes, max_length)
    return ExampleBatch(
        **{name: torch.from_numpy(a) for name, a in arrays.items()},
        target=torch.from_numpy(np.array(targets, np.int64)),
        weights=torch.ones(len(prefixes)),
    )
