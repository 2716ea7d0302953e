"""What a market's own graph says goes with an item: lines, and the numbers of a pair that the default model weighs; private.

The line is a random walk of two hops in which edges count by their users, W D⁻¹ W: on real data nothing that was tried is
better (explore-markets-sessions.md A2).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from client.tasks.markets.data.graph import Graph, Sparse
from client.tasks.markets.data.sparse_products import passed, product, tiles
from client.tasks.markets.shrinkage import SURE, reach, shrinkage_weight
from common.tasks.markets.counts import Elsewhere
from common.tasks.markets.models.pair_scorer import FEATURES, KNOWN
from common.tasks.sparse_counts import SMALLEST

Vectors = NDArray[np.float32]
Places = NDArray[np.int64]

UNIT = 100.0
"""Walks are small numbers; log(1 + 100 s) spreads them out and keeps their order."""

AT_ONCE = 2**20
"""Numbers of a feature worked on together, 4 MB: what a processor's larger cache holds."""


@dataclass(frozen=True, eq=False)
class MarketBaseline:
    """A predictor fitted by counting.

    Args:
        weights: W, n × n.
        step: D⁻¹ W, n × n: one hop of the walk.
        back: W D⁻¹, n × n, in tiles: `step` transposed, as W is symmetric.
        links: W's edges as ones, n × n.
        rare: links, rows divided by log degree, n × n.
        degree: Neighbours of each item, n.
        strength: Sum of each item's weights, n.
        texts: A vector of length 1 of each item, n × width; width 0 where there is no text.
        elsewhere: What other markets' counts say of these items.
        reach: r, see `client.tasks.markets.shrinkage`.
    """

    weights: Sparse
    step: Sparse
    back: tuple[Sparse, ...]
    links: Sparse
    rare: Sparse
    degree: Vectors
    strength: Vectors
    texts: Vectors
    elsewhere: Elsewhere
    reach: float

    @classmethod
    def of(cls, graph: Graph, texts: Vectors, elsewhere: Elsewhere) -> "MarketBaseline":
        """Count over a graph."""
        W = graph.weights
        links = csr_array((np.ones_like(W.data), W.indices, W.indptr), shape=W.shape)
        degree = np.diff(W.indptr).astype(np.float32)
        strength = np.asarray(W.sum(axis=1), np.float32).ravel()
        rare = _scaled(1 / np.log(np.maximum(degree, 2)), links)  # who has one neighbour links no pair
        step = _scaled(_inverse(strength), W)
        back, r = tiles(csr_array(step.T)), reach(links, graph.edges)
        return cls(W, step, back, links, rare, degree, strength, texts, elsewhere, r)

    def scores(self, queries: Places) -> Vectors:
        """The line's scores of all items, b × n."""
        return product(self.weights[queries], self.step)

    def popularity(self, queries: Places) -> Vectors:
        """Degrees, whatever the query, b × n: the line where nothing is known of the query."""
        return np.tile(self.degree, (len(queries), 1))

    def common_neighbours(self, queries: Places) -> Vectors:
        """How many neighbours are shared, b × n."""
        return product(self.links[queries], self.links)

    def adamic_adar(self, queries: Places) -> Vectors:
        """Σ over shared neighbours of 1/log degree, b × n (Adamic & Adar 2003)."""
        return product(self.links[queries], self.rare)

    def shared(self, queries: Places) -> Vectors:
        """Degrees here plus users elsewhere, each relative to its largest, b × n: the line for items that are new here."""
        pairs = _dense(self.elsewhere.pairs[queries])
        largest = pairs.max(axis=1, keepdims=True, initial=0)
        popular = self.popularity(queries) / max(float(self.degree.max(initial=0)), 1.0)
        both: Vectors = popular + pairs / np.maximum(largest, np.float32(SMALLEST))
        return both

    def features(self, queries: Places) -> Iterator[Vectors]:
        """Each of `FEATURES` in turn, b × n; logarithms where numbers have long tails."""
        known = (self.degree[queries] > 0).astype(np.float32)[:, None]
        yield from (known * x for x in self._known(queries))
        yield from ((1 - known) * x for x in self.as_new(queries))

    def as_new(self, queries: Places) -> Iterator[Vectors]:
        """Each of `NEW` in turn, b × n, as if these queries had no edge: candidates' degrees do not count theirs."""
        yield np.log1p(self.degree - _dense(self.links[queries]))
        yield self.texts[queries] @ self.texts.T
        pairs = self.elsewhere.pairs[queries]
        yield np.log1p(_dense(pairs))
        yield np.broadcast_to(np.log1p(self.elsewhere.degrees), pairs.shape)
        yield np.log1p(UNIT * product(_per_row(pairs), self.step)) if pairs.nnz else _dense(pairs)

    def _known(self, queries: Places) -> Iterator[Vectors]:
        walk = self.scores(queries)
        yield np.log1p(UNIT * walk)
        yield np.log1p(UNIT * passed(self.back, walk))
        common = self.common_neighbours(queries)
        yield np.log1p(common)
        yield np.log1p(self.adamic_adar(queries))
        scale = _inverse(np.sqrt(self.degree))  # who has no neighbour shares none
        yield common * scale[queries, None] * scale
        yield np.broadcast_to(np.log1p(self.degree), common.shape)
        yield np.broadcast_to(np.log1p(self.strength), common.shape)
        yield self.texts[queries] @ self.texts.T
        yield np.log1p(_dense(self.elsewhere.pairs[queries]))

    def weighed(self, queries: Places, weight: Vectors) -> Vectors:
        """κ Σ_f w_f x_f over what is known of a query and 1 − κ times that of it as if it were new, b × n.

        One feature is in memory at a time.
        """
        kappa, first_new = shrinkage_weight(self.degree[queries], self.reach), len(KNOWN)
        known, doubted = kappa > 0, kappa < SURE
        total = np.zeros((len(queries), len(self.degree)), np.float32)
        if known.any():
            total[known] = _add(total[known], weight[:first_new], self._known(queries[known]))
            total *= kappa[:, None]
        if doubted.any():
            as_new = _add(np.zeros_like(total[doubted]), weight[first_new:], self.as_new(queries[doubted]))
            total[doubted] += (1 - kappa[doubted])[:, None] * as_new
        return total


def scorer_features(line: MarketBaseline, queries: Places, candidates: Places, *, new: bool = False) -> Vectors:
    """x(a, b) of E queries and C candidates each, E × C × F; `new`: as if the queries had no edge."""
    features = np.zeros((*candidates.shape, len(FEATURES)), np.float32)
    together = max(1, AT_ONCE // max(1, len(line.degree)))
    for first in range(0, len(queries), together):
        some = slice(first, first + together)
        numbers = line.as_new(queries[some]) if new else line.features(queries[some])
        for f, x in enumerate(numbers, start=len(KNOWN) if new else 0):
            features[some, :, f] = np.take_along_axis(x, candidates[some], axis=1)
    return features


def _add(total: Vectors, weight: Vectors, features: Iterator[Vectors]) -> Vectors:
    """Σ_f w_f x_f, b × n, on top of a total, which is written over."""
    for w, x in zip(weight.tolist(), features, strict=True):
        if w:
            total += w * x
    return total


def _scaled(rows: NDArray[Any], matrix: Sparse) -> Sparse:
    return csr_array(diags_array(rows.astype(np.float32)) @ matrix)


def _inverse(numbers: Vectors) -> Vectors:
    """1/x, and 0 of 0."""
    return np.where(numbers > 0, 1 / np.where(numbers > 0, numbers, 1), 0).astype(np.float32)


def _per_row(matrix: Sparse) -> Sparse:
    """Rows that sum to 1, where they are not empty."""
    return _scaled(_inverse(np.asarray(matrix.sum(axis=1), np.float32).ravel()), csr_array(matrix))


def _dense(matrix: Any) -> Vectors:
    dense: Vectors = matrix.toarray()
    return dense
