"""Examples (clicks so far -> next click) as padded session graphs (algorithms.md §2.5–2.6)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from common.arrays import Array
from common.tasks.sessions import Clicks


@dataclass(frozen=True)
class ExampleBatch:
    """E examples, N distinct items and L clicks at most."""

    nodes: Tensor
    """Distinct items as rows of the embedding (item + 1), 0 for padding, E × N."""
    alias: Tensor
    """Node of each click, E × L."""
    mask: Tensor
    """1 for clicks, 0 for padding, E × L."""
    a_in: Tensor
    """A_in = (M D_col⁻¹)ᵀ, E × N × N."""
    a_out: Tensor
    """A_out = D_row⁻¹ M, E × N × N."""
    target: Tensor
    """The next item, E."""
    weights: Tensor
    """1, and 0 where a client's examples are padded to another's, E."""


def collate(prefixes: Sequence[Clicks], targets: Sequence[int], max_length: int) -> ExampleBatch:
    """Graphs of all examples, in NumPy at once; of a longer prefix the last `max_length` clicks count.

    An example takes 8·N² bytes of adjacency: half a million of 20 clicks want chunks.
    """
    kept = [prefix[-max_length:] for prefix in prefixes]
    clicks = _padded(kept)
    nodes, alias = _distinct(clicks)
    mask = clicks > 0
    links = _links(alias, mask, nodes.shape[1])
    a_in = (links / np.maximum(links.sum(1, keepdims=True), 1)).transpose(0, 2, 1)
    a_out = links / np.maximum(links.sum(2, keepdims=True), 1)
    return ExampleBatch(
        torch.from_numpy(nodes),
        torch.from_numpy(alias),
        torch.from_numpy(mask.astype(np.float32)),
        torch.from_numpy(np.ascontiguousarray(a_in)),
        torch.from_numpy(a_out),
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
    """Each row's distinct items, ascending, E × N, and where each click is among them, E × L (padding: node 0)."""
    order = np.argsort(clicks, axis=1, kind="stable")
    ascending = np.take_along_axis(clicks, order, axis=1)
    new = (ascending > 0) & (np.diff(ascending, axis=1, prepend=0) > 0)
    place = np.maximum(np.cumsum(new, axis=1) - 1, 0)
    nodes = np.zeros((len(clicks), int(new.sum(1).max(initial=1))), np.int64)
    example, column = np.nonzero(new)
    nodes[example, place[example, column]] = ascending[example, column]
    alias = np.zeros_like(clicks)
    np.put_along_axis(alias, order, place, axis=1)
    return nodes, np.where(clicks > 0, alias, 0)


def _links(alias: Array, mask: Array, nodes: int) -> Array:
    """M, E × N × N: 1 where an item was clicked right after another, however often."""
    links = np.zeros((len(alias), nodes, nodes), np.float32)
    example, click = np.nonzero(mask[:, 1:])
    links[example, alias[example, click], alias[example, click + 1]] = 1
    return links
