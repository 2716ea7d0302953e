"""Examples (clicks so far -> next click) as one graph of many parts (algorithms.md §2.5–2.6)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from common.arrays import Array
from common.tasks.sessions.vocabulary import Clicks

GRAPH = ("nodes", "edges", "w_in", "w_out", "clicks", "owner", "last")
"""Inputs of the networks, in their order."""


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
    kept = [prefix[-max_length:] for prefix in prefixes]
    items, lengths = _padded(kept), np.array([len(prefix) for prefix in kept], np.int64)
    nodes, alias = _distinct(items)
    edges = _edges(alias, items > 0, len(nodes))
    arriving, leaving = (np.bincount(ends, minlength=len(nodes))[ends] for ends in (edges[1], edges[0]))
    return ExampleBatch(
        torch.from_numpy(nodes),
        torch.from_numpy(edges),
        torch.from_numpy((1 / arriving).astype(np.float32)),
        torch.from_numpy((1 / leaving).astype(np.float32)),
        torch.from_numpy(alias[items > 0]),
        torch.from_numpy(np.repeat(np.arange(1, len(kept) + 1), lengths)),
        torch.from_numpy(alias[np.arange(len(kept)), np.maximum(lengths - 1, 0)]),
        torch.from_numpy(np.array(targets, np.int64)),
        torch.ones(len(kept)),
    )


def _padded(prefixes: Sequence[Clicks]) -> Array:
    """Return rows of the embedding, E × L, zeros after the last click; L is at least 1."""
    lengths = np.array([len(prefix) for prefix in prefixes], np.int64)
    clicks = np.zeros((len(prefixes), lengths.max(initial=1)), np.int64)
    if len(prefixes):
        clicks[np.arange(clicks.shape[1]) < lengths[:, None]] = np.concatenate(prefixes) + 1
    return clicks


def _distinct(clicks: Array) -> tuple[Array, Array]:
    """Return 0 and each row's distinct items, ascending, and each click's place among them, E × L."""
    order = np.argsort(clicks, axis=1, kind="stable")
    ascending = np.take_along_axis(clicks, order, axis=1)
    new = (ascending > 0) & (np.diff(ascending, axis=1, prepend=0) > 0)
    place = np.cumsum(new).reshape(new.shape)
    alias = np.zeros_like(clicks)
    np.put_along_axis(alias, order, place, axis=1)
    return np.concatenate([np.zeros(1, np.int64), ascending[new]]), np.where(clicks > 0, alias, 0)


def _edges(alias: Array, mask: Array, nodes: int) -> Array:
    """Return the distinct pairs of consecutively clicked nodes, 2 × K, ascending."""
    follows = mask[:, 1:]
    pairs = np.unique(alias[:, :-1][follows] * nodes + alias[:, 1:][follows])
    return np.stack(np.divmod(pairs, nodes))
