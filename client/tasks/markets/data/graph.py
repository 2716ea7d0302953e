"""A market's graph of items: weighted, undirected, without loops; sparse."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array

from client.tasks.markets.data.markets import Market, Pairs
from common.arrays import Floats32, Ints

Sparse = csr_array[Any, tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Graph:
    """Graph of the items of a market that go together.

    Args:
        items: The n items, ascending numbers of the catalogue.
        weights: n × n, symmetric, zero diagonal; how many users an edge stands for, 1 where that is unknown.
    """

    items: Ints
    weights: Sparse

    @property
    def edges(self) -> Pairs:
        """Each edge once, E × 2 with a < b, places in `items`."""
        rows = np.repeat(np.arange(len(self.items)), np.diff(self.weights.indptr))
        upper = rows < self.weights.indices
        return np.stack([rows[upper], self.weights.indices[upper].astype(np.int64)], axis=1)

    def without(self, edges: Pairs) -> "Graph":
        """Return the graph without some edges, given as places in `items`; all items stay."""
        gone = symmetric(edges, np.ones(len(edges), np.float32), len(self.items))
        kept = self.weights - self.weights.multiply(gone > 0)
        left = csr_array(kept)
        left.eliminate_zeros()
        return Graph(self.items, left)

    def among(self, items: Ints) -> "Graph":
        """Return the same edges among more items, ascending, which include its own."""
        places = np.searchsorted(items, self.items)
        edges = self.weights.tocoo()
        ends = places[edges.coords[0]], places[edges.coords[1]]
        return Graph(items, csr_array((edges.data, ends), shape=(len(items), len(items))))


def graph_of(market: Market, least: int) -> Graph:
    """Return the market's lists or, without any, pairs rated by at least `least` of the same users."""
    if market.listed:
        edges, counts = market.pairs, np.ones(len(market.pairs), np.float32)
    else:
        edges, counts = co_rated(market.ratings, least)
    items, places = np.unique(edges, return_inverse=True)
    return Graph(items, symmetric(places.reshape(-1, 2), counts, len(items)))


def co_rated(ratings: Pairs, least: int) -> tuple[Pairs, Floats32]:
    """Return pairs of items with at least `least` users in common, P × 2 with a < b, and their number, P."""
    if not len(ratings):
        return ratings, np.zeros(0, np.float32)
    items, places = np.unique(ratings[:, 1], return_inverse=True)
    rated = csr_array((np.ones(len(ratings), np.float32), (ratings[:, 0], places)))
    counts = csr_array(rated.T @ rated)
    counts.sort_indices()
    rows = np.repeat(np.arange(len(items)), np.diff(counts.indptr))
    kept = (rows < counts.indices) & (counts.data >= least)
    return np.stack([items[rows[kept]], items[counts.indices[kept]]], axis=1), counts.data[kept]


def symmetric(edges: Pairs, weights: Floats32, size: int) -> Sparse:
    """Return a size × size matrix with weights at (a, b) and (b, a)."""
    ends = np.concatenate([edges, edges[:, ::-1]])
    data: Floats32 = np.concatenate([weights, weights])
    matrix: Sparse = csr_array((data, (ends[:, 0], ends[:, 1])), shape=(size, size))
    matrix.sort_indices()
    return matrix


def normalised(weights: Sparse) -> Sparse:
    """Return S = D^-1/2 (A + I) D^-1/2 with degrees D of A + I (Eq 3); eigenvalues are in [−1, 1]."""
    with_self = weights + eye_array(weights.shape[0], dtype=np.float32)
    scale = diags_array(1 / np.sqrt(np.asarray(with_self.sum(axis=1)).ravel()))
    return csr_array(scale @ with_self @ scale)


def propagated(weights: Sparse, features: Floats32, hops: int) -> Floats32:
    """Return S^m X, n × width, which SGC multiplies by W; it is computed once per market."""
    S, X = normalised(weights).astype(np.float32), features
    for _ in range(hops):
        X = np.asarray(S @ X, np.float32)
    return X
