"""Lines of one market, which need no other and no training; the walk is what the default starts from."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, diags_array, lil_array
from sklearn.linear_model import ElasticNet

from benchmarks.markets.sets import XMarket
from client.tasks.markets.baseline import MarketBaseline
from client.tasks.markets.data.graph import Graph
from client.tasks.markets.prepare import ReadyMarket, prepare
from common.tasks.markets.counts import OtherMarketCounts
from common.tasks.markets.metrics import ScoreBlock, ranking_metrics
from common.tasks.markets.options import MarketsOptions

RIDGE = 10.0
"""λ of EASE, as in the exploration."""

SHRINKAGE, SPARSITY = 10.0, 0.1
"""β and λ of SLIM; on held-back pairs of three markets, others from 1 to 30 and from .1 to 1 do no better."""

NEAREST = 100
"""Items that one is regressed on at most in SLIM; all that share a neighbour with it where they are no more."""

Floats = NDArray[np.float32]
Places = NDArray[np.int64]
Sparse = csr_array[Any, tuple[int, int]]
Columns = csc_array[Any]

TITLES = {
    "degree": "*line:* degree (popularity)",
    "common": "*line:* common neighbours",
    "rare": "*line:* Adamic-Adar",
    "hops": "*line:* walk, binary, P² + ½P³ + ¼P⁴",
    "ease": "*line:* EASE on log counts, λ 10",
    "slim": "*line:* SLIM on log counts, β 10, λ .1",
    "walk": "*line:* wRA, count-weighted walk of two hops",
}


def line_metrics(markets: XMarket, protocol: str, seed: int) -> dict[str, dict[str, dict[str, float]]]:
    """Line -> market -> its metrics on the pairs held out for testing."""
    options = MarketsOptions.model_validate({"protocol": protocol, "features": "ids", "width": 2})
    told: dict[str, dict[str, dict[str, float]]] = {key: {} for key in TITLES}
    for market in markets.whole.units:
        ready = prepare(market, markets.whole.vocabulary, options, seed)
        for key, scores in lines(ready.graph).items():
            told[key][market.name] = measured(scores, ready)
    return told


def lines(graph: Graph) -> dict[str, ScoreBlock]:
    """Line -> its scores of all items."""
    line = line_of(graph)
    similar, G = _ease(line), _log_counts(line)
    B = slim(G)
    return {
        "degree": line.popularity,
        "common": line.common_neighbors,
        "rare": line.adamic_adar,
        "hops": partial(_hops, line),
        "ease": lambda queries: similar[queries].copy(),
        "slim": lambda queries: (G[queries] @ B).toarray(),
        "walk": line.scores,
    }


def line_of(graph: Graph) -> MarketBaseline:
    """Counts over a graph, of items without text, where nothing is shared."""
    size = len(graph.items)
    return MarketBaseline.of(graph, np.zeros((size, 0), np.float32), OtherMarketCounts.zeros(size))


def measured(scores: ScoreBlock, ready: ReadyMarket) -> dict[str, float]:
    """On the pairs held out for testing."""
    return ranking_metrics(scores, ready.split.test.right, ready.masked("test"))[0]


def _hops(line: MarketBaseline, queries: NDArray[np.int64]) -> Floats:
    inverse = np.where(line.degree > 0, 1 / np.maximum(line.degree, 1), 0)
    P = csr_array(diags_array(inverse.astype(np.float32)) @ line.links)
    second: Floats = (P[queries] @ P).toarray()
    third: Floats = second @ P
    fourth: Floats = third @ P
    return (second + third / 2 + fourth / 4).astype(np.float32)


def _ease(line: MarketBaseline) -> Floats:
    """S = G·B of the graph's own rows, B = I − P/diag P, P = (GᵀG + λI)⁻¹ (Steck 2019), G = log(1 + W)."""
    G = _log_counts(line).toarray()
    P = np.linalg.inv(G.T @ G + RIDGE * np.eye(len(G)))
    B = -P / np.diag(P)
    np.fill_diagonal(B, 0)
    return (G @ B).astype(np.float32)


def slim(G: Sparse, shrinkage: float = SHRINKAGE, sparsity: float = SPARSITY, nearest: int = NEAREST) -> Sparse:
    """B of min ½‖G − GB‖² + β/2‖B‖² + λ‖B‖₁, B ≥ 0, diag B = 0 (Ning & Karypis 2011, Eq 3), n × n.

    Theirs is a matrix of users and items; a market has none of lists, so that G is the graph's own rows (algorithms.md §5.6).
    Columns that share no row with one have no weight in its optimum, so that only others are asked; of these, those that share
    most, as in their fsSLIM.

    Args:
        G: n × n, nothing negative.
        shrinkage: β.
        sparsity: λ.
        nearest: Columns that one is regressed on at most.
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
    """The other columns that share most with column j."""
    some = slice(shared.indptr[j], shared.indptr[j + 1])
    others = shared.indices[some][np.argsort(-shared.data[some], kind="stable")].astype(np.int64)
    chosen: Places = others[others != j][:most]
    return chosen


def _small(columns: Columns) -> Columns:
    """With indices of 32 bits, which is all that scikit-learn takes."""
    parts = columns.data, columns.indices.astype(np.int32), columns.indptr.astype(np.int32)
    return csc_array(parts, shape=columns.shape)


def _log_counts(line: MarketBaseline) -> Sparse:
    """G = log(1 + W)."""
    return csr_array(line.weights.astype(np.float64)).log1p()
