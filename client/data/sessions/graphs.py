"""Examples (clicks so far -> next click) as one graph of many parts (algorithms.md §2.5–2.6)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from common.arrays import Array
from common.tasks.sessions import Clicks

GRAPH = ("nodes", "edges", "w_in", "w_out", "alias", "mask")
"""What the networks take, in their order."""


@dataclass(frozen=True)
class ExampleBatch:
    """E examples of L clicks at most, with M distinct items and K edges all told."""

    nodes: Tensor
    """Distinct items of each example as rows of the embedding (item + 1), example after example, M."""
    edges: Tensor
    """From node to node, 2 × K: one edge an example and pair of items, however often one was clicked right after the other."""
    w_in: Tensor
    """A_in = (M D_col⁻¹)ᵀ at each edge, K."""
    w_out: Tensor
    """A_out = D_row⁻¹ M at each edge, K."""
    alias: Tensor
    """Node of each click, E × L; 0 for padding."""
    mask: Tensor
    """1 for clicks, 0 for padding, E × L."""
    target: Tensor
    """The next item, E."""
    weights: Tensor
    """1, and 0 where a client's examples are padded to another's, E."""

    @property
    def graph(self) -> tuple[Tensor, ...]:
        """Those of `GRAPH`."""
        return tuple(getattr(self, name) for name in GRAPH)


def collate(prefixes: Sequence[Clicks], targets: Sequence[int], max_length: int) -> ExampleBatch:
    """Graphs of all examples, in NumPy at once; of a longer prefix the last `max_length` clicks count.

    There is at least one node, a padding one if need be, so that a padded click has where to point.
    """
    kept = [prefix[-max_length:] for prefix in prefixes]
    clicks = _padded(kept)
    nodes, alias = _distinct(clicks)
    edges = _edges(alias, clicks > 0, len(nodes))
    arriving, leaving = (np.bincount(ends, minlength=len(nodes))[ends] for ends in (edges[1], edges[0]))
    return ExampleBatch(
        torch.from_numpy(nodes),
        torch.from_numpy(edges),
        torch.from_numpy((1 / arriving).astype(np.float32)),
        torch.from_numpy((1 / leaving).astype(np.float32)),
        torch.from_numpy(alias),
        torch.from_numpy((clicks > 0).astype(np.float32)),
        torch.from_numpy(np.array(targets, np.int64)),
        torch.ones(len(kept)),
    )


def _padded(prefixes: Sequence[Clicks]) -> Array:
    """Rows of the embedding, E × L, zeros after the last click; L is at least 1, so that there is a node to be masked."""
    lengths = np.array([len(prefix) for prefix in prefixes], np.int64)
    clicks = np.zeros((len(prefixes), lengths.max(initial=1)), np.int64)
    if len(prefixes):
        clicks[np.arange(clicks.shape[1]) < lengths[:, None]] = np.concatenate(prefixes) + 1
    return clicks


def _distinct(clicks: Array) -> tuple[Array, Array]:
    """Each row's distinct items, ascending, row after row, and where each click is among them, E × L (padding: node 0)."""
    order = np.argsort(clicks, axis=1, kind="stable")
    ascending = np.take_along_axis(clicks, order, axis=1)
    new = (ascending > 0) & (np.diff(ascending, axis=1, prepend=0) > 0)
    place = np.cumsum(new).reshape(new.shape) - 1
    alias = np.zeros_like(clicks)
    np.put_along_axis(alias, order, place, axis=1)
    nodes = ascending[new] if new.any() else np.zeros(1, np.int64)
    return nodes, np.where(clicks > 0, alias, 0)


def _edges(alias: Array, mask: Array, nodes: int) -> Array:
    """Each pair of nodes of which one was clicked right after the other, once, 2 × K, ascending."""
    follows = mask[:, 1:]
    pairs = np.unique(alias[:, :-1][follows] * nodes + alias[:, 1:][follows])
    return np.stack(np.divmod(pairs, nodes))
