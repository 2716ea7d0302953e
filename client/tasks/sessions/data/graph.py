"""Graphs of sessions as arrays; importing it must not import torch (algorithms.md §2.5–2.6)."""

from collections.abc import Sequence

import numpy as np

from common.arrays import Array, Arrays
from common.tasks.sessions.vocabulary import Clicks

GRAPH = ("nodes", "edges", "w_in", "w_out", "clicks", "owner", "last")
"""Inputs of the networks, in their order."""


def graph_arrays(prefixes: Sequence[Clicks], max_length: int) -> Arrays:
    """Return the arrays that `GRAPH` names; of a longer prefix, the last `max_length` clicks count."""
    kept = [prefix[-max_length:] for prefix in prefixes]
    items, lengths = _padded(kept), np.array([len(prefix) for prefix in kept], np.int64)
    nodes, alias = _distinct(items)
    edges = _edges(alias, items > 0, len(nodes))
    arriving, leaving = (np.bincount(ends, minlength=len(nodes))[ends] for ends in (edges[1], edges[0]))
    return {
        "nodes": nodes,
        "edges": edges,
        "w_in": (1 / arriving).astype(np.float32),
        "w_out": (1 / leaving).astype(np.float32),
        "clicks": alias[items > 0],
        "owner": np.repeat(np.arange(1, len(kept) + 1), lengths),
        "last": alias[np.arange(len(kept)), np.maximum(lengths - 1, 0)],
    }


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
