"""Graph baselines of a market and the features of item pairs for the default model; private data."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, diags_array, get_index_dtype

from client.tasks.markets.data.graph import Graph, Sparse
from common.arrays import Floats32, Ints
from common.tasks.markets.pairs import COLD_FEATURES, GRAPH_FEATURES, MIN_COUNT, OtherMarketCounts

SHRINKAGE_STRENGTH = 4.0
"""Constant c of the shrinkage weight.

Chosen on held-out pairs of two markets with 10 %, 30 % and 100 % of their pairs. For c from 1 to 8 MRR@20 changes by at most
4 points; without shrinkage it is 4 to 10 points lower if pairs are few.
"""

FULL_WEIGHT = 0.99
"""Shrinkage weight κ from which a query uses its own edges only."""

MAX_REACH_PAIRS = 20_000
"""Maximum number of pairs on which `reach` is estimated, evenly spaced."""


def reach(links: csr_array[Any, tuple[int, int]], pairs: Ints) -> float:
    """Estimate r, the share of pairs whose ends have a common neighbor, with Laplace smoothing.

    A walk of two hops finds such a pair without its own edge. Smoothing adds one pair of each kind.

    Args:
        links: Edges as ones, n × n.
        pairs: Edges, each once, E × 2.
    """
    some = pairs[:: max(1, len(pairs) // MAX_REACH_PAIRS)]
    common = links[some[:, 0]].multiply(links[some[:, 1]]).sum(axis=1)
    return float((np.count_nonzero(common) + 1) / (len(some) + 2))


def shrinkage_weight(degree: Floats32, r: float) -> Floats32:
    """Compute κ = d/(d + c(1 − r)/r) of queries with d neighbors, b; 0 without neighbors."""
    shrunk = degree * np.float32(r)
    whole = shrunk + np.float32(SHRINKAGE_STRENGTH * (1 - r))
    weight: Floats32 = np.divide(shrunk, whole, out=np.zeros_like(shrunk), where=whole > 0)
    return weight


NEAREST = 10
"""Number of items with the nearest texts."""


def text_neighbors(similarity: Floats32, queries: Ints) -> Sparse:
    """Return the weights of the items with the nearest texts, b × n.

    A row sums to 1, or to 0 without similar texts.

    Args:
        similarity: Cosines of the texts of b queries with those of all n items.
        queries: Places of the queries, which are no neighbors of themselves.
    """
    b, n = similarity.shape
    others = similarity.copy()
    others[np.arange(b), queries] = 0
    most = min(NEAREST, n) if similarity.any() else 0
    columns = np.argpartition(others, -most, axis=1)[:, n - most :]
    values = np.maximum(np.take_along_axis(others, columns, axis=1), 0)
    total = values.sum(axis=1, keepdims=True)
    shares = np.divide(values, total, out=np.zeros_like(values), where=total > 0)
    rows = np.repeat(np.arange(b), columns.shape[1])
    near = csr_array((shares.ravel(), (rows, columns.ravel())), shape=(b, n))
    near.eliminate_zeros()
    return near


TERMS = 2**20
"""Terms of a product held at once, 20 bytes each; the last row of them may exceed it."""

TILE = 4096
"""Columns of a tile: as many rows of a dense block as a processor's smaller cache holds."""


def product(left: Sparse, right: Sparse) -> Floats32:
    """Return left @ right as a dense array, b × n, for sparse rows of `left`."""
    terms = np.diff(right.indptr)[left.indices]
    before = np.append(0, np.cumsum(terms))[left.indptr[:-1]]
    cuts = np.flatnonzero(np.diff(before // TERMS)) + 1
    bounds = [0, *cuts.tolist(), left.shape[0]]
    return np.concatenate([_spread(left[a:b], right) for a, b in pairwise(bounds)])


def tiles(matrix: Sparse) -> tuple[Sparse, ...]:
    """Split a matrix between columns, m × `TILE` each but the last."""
    return tuple(csr_array(matrix[:, first : first + TILE]) for first in range(0, matrix.shape[1], TILE))


def times_transposed(cut: tuple[Sparse, ...], rows: Floats32) -> Floats32:
    """Return rows @ matrixᵀ, b × n, for rows, b × n, and a matrix in tiles, n × n."""
    start = np.ascontiguousarray(rows.T)
    end, first = np.zeros_like(start), 0
    for tile in cut:
        end += tile @ start[first : first + tile.shape[1]]
        first += tile.shape[1]
    return np.ascontiguousarray(end.T)


def _spread(left: Sparse, right: Sparse) -> Floats32:
    """Compute left @ right by adding the row of `right` for each entry of `left`."""
    rows, size = left.shape[0], right.shape[1]
    picked = right[left.indices]
    numbers = np.arange(rows, dtype=get_index_dtype(maxval=rows * size))
    start = np.repeat(numbers * size, np.diff(left.indptr))
    places = picked.indices + np.repeat(start, np.diff(picked.indptr))
    added = csc_array((picked.data, places, picked.indptr), shape=(rows * size, len(start)))
    flat: Floats32 = added @ left.data
    return flat.reshape(rows, size)


LOG_SCALE = 100.0
"""Scale of walk probabilities s in the feature log(1 + 100 s)."""

MOST_REGRESSED = 3000
"""Largest number of items of EASE, those with most users; the others have scores of 0.

Inverting the matrix of n items takes 24·n² bytes, and 2 s for 2,500.
"""

EASE_STRENGTH, PRIOR_WEIGHT = 1.0, 0.3
"""λ of EASE, and weight of the other markets' rows in it.

Chosen on held-out training pairs of XMarket and Online Retail; half and double change MRR@20 by .3 points at most.
"""


@dataclass(frozen=True, eq=False)
class Ease:
    """EASE of a market's graph (Steck 2019): B = I − P·diag(P)⁻¹ with P = (GᵀG + τ·OᵀO + λI)⁻¹.

    Args:
        size: Number n of items of the market.
        columns: Items that are regressed on each other, ascending.
        regression: B of these items.
    """

    size: int
    columns: Ints
    regression: Floats32

    @classmethod
    def of(cls, weights: Sparse, others: Sparse) -> "Ease":
        """Solve for rows G of a market and O of the other markets, both log counts of norm 1."""
        strength = np.asarray(weights.sum(axis=1)).ravel()
        columns = np.sort(np.argsort(-strength, kind="stable")[:MOST_REGRESSED])
        market, shared = (_unit_rows(matrix[columns][:, columns]) for matrix in (weights, others))
        gram = (market.T @ market + PRIOR_WEIGHT * (shared.T @ shared)).toarray().astype(np.float64)
        gram[np.diag_indices(len(columns))] += EASE_STRENGTH
        inverse = np.linalg.inv(gram)
        regression = -inverse / np.diagonal(inverse)
        np.fill_diagonal(regression, 0)
        return cls(weights.shape[0], columns, regression.astype(np.float32))

    def scores(self, rows: Sparse) -> Floats32:
        """Return the scores of all items for queries with these rows of the graph, b × n."""
        scores = np.zeros((rows.shape[0], self.size), np.float32)
        scores[:, self.columns] = _unit_rows(rows[:, self.columns]) @ self.regression
        return scores


def _unit_rows(counts: Sparse) -> Sparse:
    """Return the logarithms of 1 + counts, each row with norm 1."""
    logs = csr_array(counts).log1p()
    return _scale_rows(_inverse(np.sqrt(np.asarray(logs.multiply(logs).sum(axis=1))).ravel()), logs)


BLOCK_NUMBERS = 2**20
"""Number of values of a feature processed together; 4 MB fit a processor's larger cache."""


@dataclass(frozen=True, eq=False)
class MarketBaseline:
    """Count-based predictors on the graph of one market.

    Args:
        weights: Edge weights W, n × n.
        step: One hop of the walk, D⁻¹ W, n × n.
        back: Transpose of `step`, W D⁻¹ (W is symmetric), n × n, in tiles.
        links: Edges of W as ones, n × n.
        rare: Rows of `links` divided by log degree, n × n.
        degree: Number of neighbors of each item, n.
        strength: Sum of the weights of each item, n.
        texts: Text features of norm 1 of each item, n × width; width 0 without texts.
        other_counts: Counts of other markets for these items.
        reach: Share r of pairs that the walk finds; see `client.tasks.markets.baseline`.
        ease: EASE of the graph, one more feature of the graph; None if the model does not use it.
    """

    weights: Sparse
    step: Sparse
    back: tuple[Sparse, ...]
    links: Sparse
    rare: Sparse
    degree: Floats32
    strength: Floats32
    texts: Floats32
    other_counts: OtherMarketCounts
    reach: float
    ease: Ease | None = None

    @classmethod
    def of(
        cls, graph: Graph, texts: Floats32, other_counts: OtherMarketCounts, *, with_ease: bool = False
    ) -> "MarketBaseline":
        """Compute the statistics of a graph."""
        W = graph.weights
        links = csr_array((np.ones_like(W.data), W.indices, W.indptr), shape=W.shape)
        degree = np.diff(W.indptr).astype(np.float32)
        strength = np.asarray(W.sum(axis=1), np.float32).ravel()
        rare = _scale_rows(1 / np.log(np.maximum(degree, 2)), links)  # an item with one neighbor links no pair
        step = _scale_rows(_inverse(strength), W)
        back, r = tiles(csr_array(step.T)), reach(links, graph.edges)
        ease = Ease.of(W, other_counts.pairs) if with_ease else None
        return cls(W, step, back, links, rare, degree, strength, texts, other_counts, r, ease)

    @property
    def first_cold(self) -> int:
        """Number of features of queries with edges; those of queries without follow."""
        return len(GRAPH_FEATURES) + (self.ease is not None)

    def scores(self, queries: Ints) -> Floats32:
        """Compute the walk's scores of all items, b × n."""
        return product(self.weights[queries], self.step)

    def popularity(self, queries: Ints) -> Floats32:
        """Return degrees, independent of the query, b × n: the baseline for queries without edges."""
        return np.tile(self.degree, (len(queries), 1))

    def common_neighbors(self, queries: Ints) -> Floats32:
        """Count common neighbors, b × n."""
        return product(self.links[queries], self.links)

    def adamic_adar(self, queries: Ints) -> Floats32:
        """Compute Σ 1/log degree over common neighbors, b × n (Adamic & Adar 2003)."""
        return product(self.links[queries], self.rare)

    def shared(self, queries: Ints) -> Floats32:
        """Return degrees here plus users of the pair in other markets, each over its maximum, b × n.

        This is the baseline for items that are new in the market.
        """
        pairs = _dense(self.other_counts.pairs[queries])
        largest = pairs.max(axis=1, keepdims=True, initial=0)
        popular = self.popularity(queries) / max(float(self.degree.max(initial=0)), 1.0)
        score: Floats32 = popular + pairs / np.maximum(largest, np.float32(MIN_COUNT))
        return score

    def features(self, queries: Ints) -> Iterator[Floats32]:
        """Yield each of `FEATURES` in turn, b × n; logarithms of values with heavy tails."""
        has_neighbors = (self.degree[queries] > 0).astype(np.float32)[:, None]
        yield from (has_neighbors * x for x in self.graph_features(queries))
        yield from ((1 - has_neighbors) * x for x in self.cold_features(queries))

    def cold_features(self, queries: Ints) -> Iterator[Floats32]:
        """Yield each of `COLD_FEATURES` in turn, b × n, as if the queries had no edges.

        Degrees of candidates do not count edges to the query.
        """
        yield np.log1p(self.degree - _dense(self.links[queries]))
        similar = self.texts[queries] @ self.texts.T
        yield similar
        pairs = self.other_counts.pairs[queries]
        yield np.log1p(_dense(pairs))
        yield np.broadcast_to(np.log1p(self.other_counts.degrees), pairs.shape)
        yield np.log1p(LOG_SCALE * product(_normalize_rows(pairs), self.step)) if pairs.nnz else _dense(pairs)
        near = text_neighbors(similar, queries)
        yield np.log1p(LOG_SCALE * product(near, self.step)) if near.nnz else _dense(near)
        yield np.log1p(_dense(near @ self.other_counts.pairs))

    def graph_features(self, queries: Ints) -> Iterator[Floats32]:
        """Yield each of `GRAPH_FEATURES` in turn, b × n, then EASE if it is used, as if all queries had edges."""
        walk = self.scores(queries)
        yield np.log1p(LOG_SCALE * walk)
        yield np.log1p(LOG_SCALE * times_transposed(self.back, walk))
        common = self.common_neighbors(queries)
        yield np.log1p(common)
        yield np.log1p(self.adamic_adar(queries))
        scale = _inverse(np.sqrt(self.degree))  # an item without neighbors has cosine 0
        yield common * scale[queries, None] * scale
        yield np.broadcast_to(np.log1p(self.degree), common.shape)
        yield np.broadcast_to(np.log1p(self.strength), common.shape)
        yield self.texts[queries] @ self.texts.T
        yield np.log1p(_dense(self.other_counts.pairs[queries]))
        yield (_normalize_rows(self.links[queries]) @ self.texts) @ self.texts.T
        if self.ease:
            yield self.ease.scores(self.weights[queries])

    def weighted_scores(self, queries: Ints, weight: Floats32) -> Floats32:
        """Compute κ Σ_f w_f x_f over graph features plus (1 − κ) Σ_f w_f x_f over cold features, b × n.

        κ is the shrinkage weight of a query. One feature is in memory at a time.
        """
        kappa = shrinkage_weight(self.degree[queries], self.reach)
        is_warm, is_cold = kappa > 0, kappa < FULL_WEIGHT
        total = np.zeros((len(queries), len(self.degree)), np.float32)
        if is_warm.any():
            total[is_warm] = self.graph_scores(queries[is_warm], weight)
            total *= kappa[:, None]
        if is_cold.any():
            total[is_cold] += (1 - kappa[is_cold])[:, None] * self.cold_scores(queries[is_cold], weight)
        return total

    def graph_scores(self, queries: Ints, weight: Floats32) -> Floats32:
        """Compute Σ_f w_f x_f over the features of queries with edges, b × n."""
        return self._sum(queries, weight[: self.first_cold], self.graph_features(queries))

    def cold_scores(self, queries: Ints, weight: Floats32) -> Floats32:
        """Compute Σ_f w_f x_f over the features of queries without edges, b × n."""
        return self._sum(queries, weight[self.first_cold :], self.cold_features(queries))

    def _sum(self, queries: Ints, weight: Floats32, features: Iterator[Floats32]) -> Floats32:
        total = np.zeros((len(queries), len(self.degree)), np.float32)
        for w, x in zip(weight.tolist(), features, strict=True):
            if w:
                total += w * x
        return total


def scorer_features(baseline: MarketBaseline, queries: Ints, candidates: Ints, *, is_cold: bool = False) -> Floats32:
    """Return x(a, b) of E queries with C candidates each, E × C × F; `new`: as for cold queries."""
    features = np.zeros((*candidates.shape, baseline.first_cold + len(COLD_FEATURES)), np.float32)
    block_size = max(1, BLOCK_NUMBERS // max(1, len(baseline.degree)))
    for first in range(0, len(queries), block_size):
        some = slice(first, first + block_size)
        features_of_block = baseline.cold_features(queries[some]) if is_cold else baseline.features(queries[some])
        for f, x in enumerate(features_of_block, start=baseline.first_cold if is_cold else 0):
            features[some, :, f] = np.take_along_axis(x, candidates[some], axis=1)
    return features


def _scale_rows(rows: NDArray[Any], matrix: Sparse) -> Sparse:
    return csr_array(diags_array(rows.astype(np.float32)) @ matrix)


def _inverse(values: Floats32) -> Floats32:
    """Compute 1/x, with 1/0 = 0."""
    return np.where(values > 0, 1 / np.where(values > 0, values, 1), 0).astype(np.float32)


def _normalize_rows(matrix: Sparse) -> Sparse:
    """Divide each non-empty row by its sum."""
    return _scale_rows(_inverse(np.asarray(matrix.sum(axis=1), np.float32).ravel()), csr_array(matrix))


def _dense(matrix: Any) -> Floats32:
    dense: Floats32 = matrix.toarray()
    return dense
