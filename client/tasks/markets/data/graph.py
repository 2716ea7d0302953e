"""Graph of a market's items, weighted, undirected and sparse, and its counts for sums."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array, triu
from scipy.special import ndtr, ndtri

from client.tasks.markets.data.markets import Market, Pairs
from common.arrays import Arrays, Floats, Floats32, Ints
from common.errors import DataError
from common.tasks.markets.counts import DEGREES, KEYS, VALUES, counts_of

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


MOST = 8
"""Items of one user that count, where that is bounded."""

PASSING = 4.5
"""Threshold of released counts, in standard deviations: of 30 million empty pairs about 100 pass."""


def graph_counts(graph: Graph, items: int) -> Arrays:
    """Return the edge weights and the degrees of a graph's items, out of `items` = V items."""
    degrees = np.zeros(items)
    degrees[graph.items] = np.diff(graph.weights.indptr)
    values = csr_array(triu(graph.weights)).data
    return counts_of(graph.items[graph.edges], values, degrees, items)


def bounded_counts(ratings: Pairs, items: int, rng: np.random.Generator, exact: type = np.float32) -> Arrays:
    """Return counts to which any one user adds a vector of L2 norm 1 at most.

    At most `MOST` of a user's items count, drawn at random. All that they add, to each pair and to each item, is
    1/√(pairs + items). No threshold on co-ratings applies: whether a pair reaches it would depend on other users.

    Args:
        ratings: Each (user, item) once.
        items: V.
        rng: Draws the items.
        exact: Type of the counts; float64 where noise is to hide a user.

    Raises:
        DataError: The market has no users.
    """
    if not len(ratings):
        raise DataError("pairs of items name no users whose part can be bounded; set tasks.markets.bound-users=false")
    kept = _drawn(ratings, rng)
    counts = np.bincount(kept[:, 0])[kept[:, 0]]
    shares = 1 / np.sqrt(counts * (counts + 1) / 2)  # k items and k(k−1)/2 pairs
    pairs, values = _pairs(kept, shares, items)
    return counts_of(pairs, values, np.bincount(kept[:, 1], shares, items), items, exact)


def noised(counts: Arrays, items: int, noise: float, rng: np.random.Generator) -> Arrays:
    """Add N(0, noise²) to every pair and item of the catalogue; keep what exceeds `PASSING` · noise.

    All pairs are noised, also those that nobody has, since their absence would tell. Those are too many to draw one by one:
    drawn are how many of them pass, which, and how high, which is the same in distribution.

    Args:
        counts: As `bounded_counts` makes them, in float64: a rounded large count moves by more than its user's share.
        items: V.
        noise: Standard deviation.
        rng: Draws the noise.
    """
    least = PASSING * noise
    values = counts[VALUES] + noise * rng.standard_normal(len(counts[VALUES]))
    degrees = counts[DEGREES] + noise * rng.standard_normal(items)
    strangers = _strangers(counts[KEYS], items, rng)
    heights = -noise * ndtri(ndtr(-PASSING) * rng.random(len(strangers)))
    keys = np.concatenate([counts[KEYS][values > least], strangers])
    order = np.argsort(keys)
    pairs = np.stack([keys // items, keys % items], axis=1)[order]
    return counts_of(
        pairs, np.concatenate([values[values > least], heights])[order], np.where(degrees > least, degrees, 0), items
    )


def _strangers(keys: Ints, items: int, rng: np.random.Generator) -> Ints:
    """Sample keys of pairs without users that exceed the threshold by noise alone."""
    wanted = rng.binomial(items * (items - 1) // 2 - len(keys), ndtr(-PASSING))
    found: Ints = np.zeros(0, np.int64)
    while len(found) < wanted:
        a, b = np.sort(rng.integers(items, size=(2, wanted)), axis=0)
        found = np.setdiff1d(np.union1d(found, (a * items + b)[a < b]), keys)
    return rng.permutation(found)[:wanted]


def _drawn(ratings: Pairs, rng: np.random.Generator) -> Pairs:
    """Return at most `MOST` rows per user, ordered by users and items."""
    shuffled = ratings[rng.permutation(len(ratings))]
    shuffled = shuffled[np.argsort(shuffled[:, 0], kind="stable")]
    first = np.searchsorted(shuffled[:, 0], shuffled[:, 0])
    kept = shuffled[np.arange(len(shuffled)) - first < MOST]
    return kept[np.lexsort((kept[:, 1], kept[:, 0]))]


def _pairs(kept: Pairs, shares: Floats, items: int) -> tuple[Pairs, Floats]:
    """Return pairs of items with a common user, P × 2, and their weights summed over users, P."""
    keys, values = [], []
    for apart in range(1, MOST):
        same = np.flatnonzero(kept[apart:, 0] == kept[:-apart, 0]) if apart < len(kept) else np.zeros(0, np.int64)
        keys.append(kept[same, 1] * items + kept[same + apart, 1])
        values.append(shares[same])
    distinct, place = np.unique(np.concatenate(keys), return_inverse=True)
    sums: Floats = np.bincount(place, np.concatenate(values), len(distinct)).astype(np.float64)
    return np.stack([distinct // items, distinct % items], axis=1).astype(np.int64), sums
