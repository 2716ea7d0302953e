"""Baselines without training, of one market or of pooled ones; the default starts from the walk."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, diags_array, lil_array
from sklearn.linear_model import ElasticNet

from client.tasks.markets.baseline import MarketBaseline
from client.tasks.markets.data.graph import Graph
from client.tasks.markets.learner import ReadyMarket
from common.arrays import Arrays
from common.tasks.markets.metrics import ScoreBlock, ranking_metrics
from common.tasks.markets.pairs import OtherMarketCounts, add_pairs
from studies.markets.experiments import PREFIX

RIDGE = 10.0
"""λ of EASE, as in the exploration."""

SHRINKAGE, SPARSITY = 10.0, 0.1
"""β and λ of SLIM.

On held-out pairs of three markets, values from 1 to 30 and from .1 to 1 are no better.
"""

NEAREST = 100
"""Largest number of items that an item is regressed on in SLIM."""

Floats = NDArray[np.float32]
Places = NDArray[np.int64]
Sparse = csr_array[Any, tuple[int, int]]
Columns = csc_array[Any]

Baseline = Callable[[MarketBaseline], ScoreBlock]
"""Counts of a market -> scores of all items for some queries."""


def counts_of(graph: Graph) -> MarketBaseline:
    """Return counts over a graph of items without text, where nothing is shared."""
    size = len(graph.items)
    return MarketBaseline.of(graph, np.zeros((size, 0), np.float32), OtherMarketCounts.zeros(size))


def others_of(ready: Mapping[str, ReadyMarket], name: str) -> Arrays:
    """Return the training counts of all markets but one."""
    return add_pairs([market.counts for other, market in ready.items() if other != name])


def counted(key: str, graph: Graph, others: Arrays) -> Graph:
    """Return the graph of a baseline; a pooled one has the other markets' counts, too."""
    if not key.startswith(PREFIX):
        return graph
    return Graph(graph.items, csr_array(graph.weights + OtherMarketCounts.of(others, graph.items).pairs))


def measure(key: str, ready: ReadyMarket, others: Arrays) -> dict[str, float]:
    """Return metrics of a baseline on the pairs held out for testing."""
    scores = SCORES[key.removeprefix(PREFIX)](counts_of(counted(key, ready.graph, others)))
    return ranking_metrics(scores, ready.split.test.right, ready.masked("test"))[0]


def _hops(counts: MarketBaseline, queries: NDArray[np.int64]) -> Floats:
    inverse = np.where(counts.degree > 0, 1 / np.maximum(counts.degree, 1), 0)
    P = csr_array(diags_array(inverse.astype(np.float32)) @ counts.links)
    second: Floats = (P[queries] @ P).toarray()
    third: Floats = second @ P
    fourth: Floats = third @ P
    return (second + third / 2 + fourth / 4).astype(np.float32)


def _ease(counts: MarketBaseline) -> Floats:
    """Return S = G·B of the graph's own rows G = log(1 + W) (Steck 2019).

    B = I − P/diag P with P = (GᵀG + λI)⁻¹.
    """
    G = _log_counts(counts).toarray()
    P = np.linalg.inv(G.T @ G + RIDGE * np.eye(len(G)))
    B = -P / np.diag(P)
    np.fill_diagonal(B, 0)
    return (G @ B).astype(np.float32)


def slim(G: Sparse, shrinkage: float = SHRINKAGE, sparsity: float = SPARSITY, nearest: int = NEAREST) -> Sparse:
    """Return the item weights B of SLIM, n × n (Ning & Karypis 2011, Eq 3).

    B minimizes ½‖G − GB‖² + β/2‖B‖² + λ‖B‖₁ under B ≥ 0 and diag B = 0.

    The paper's matrix is of users and items. Pairs have no users, so G holds the rows of the graph (algorithms.md §5.6).
    Columns that share no row with a column have no weight in its optimum and are left out. Of the others, those that share
    most rows are kept, as in fsSLIM.

    Args:
        G: Matrix n × n without negative entries.
        shrinkage: Weight β.
        sparsity: Weight λ.
        nearest: Largest number of columns that a column is regressed on.
    """
    columns, shared, size = _small(csc_array(G)), csr_array(G.T @ G), G.shape[0]
    rate = (shrinkage + sparsity) / size  # scikit-learn divides the squares by n
    net = ElasticNet(alpha=rate, l1_ratio=sparsity / (shrinkage + sparsity), positive=True, fit_intercept=False)
    B = lil_array((size, size))
    for j in range(size):
        others = _nearest(shared, j, nearest)
        if len(others):
            B[others, [j]] = net.fit(_small(columns[:, others]), columns[:, [j]].toarray()[:, 0]).coef_
    return csr_array(B)


def _nearest(shared: Sparse, j: int, most: int) -> Places:
    """Return the other columns that share most rows with column j."""
    some = slice(shared.indptr[j], shared.indptr[j + 1])
    others = shared.indices[some][np.argsort(-shared.data[some], kind="stable")].astype(np.int64)
    chosen: Places = others[others != j][:most]
    return chosen


def _small(columns: Columns) -> Columns:
    """Return the columns with 32-bit indices, as scikit-learn requires."""
    parts = columns.data, columns.indices.astype(np.int32), columns.indptr.astype(np.int32)
    return csc_array(parts, shape=columns.shape)


def _log_counts(counts: MarketBaseline) -> Sparse:
    """Return G = log(1 + W)."""
    return csr_array(counts.weights.astype(np.float64)).log1p()


def _ease_scores(counts: MarketBaseline) -> ScoreBlock:
    similar = _ease(counts)
    return lambda queries: similar[queries].copy()


def _slim_scores(counts: MarketBaseline) -> ScoreBlock:
    G = _log_counts(counts)
    B = slim(G)
    return lambda queries: (G[queries] @ B).toarray()


SCORES: dict[str, Baseline] = {
    "degree": lambda counts: counts.popularity,
    "common": lambda counts: counts.common_neighbors,
    "rare": lambda counts: counts.adamic_adar,
    "hops": lambda counts: partial(_hops, counts),
    "ease": _ease_scores,
    "slim": _slim_scores,
    "walk": lambda counts: counts.scores,
}
