"""Lines of one market, which need no other and no training; the walk is what the default starts from."""

from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from benchmarks.markets.sets import Markets
from client.data.markets.graph import Graph
from client.tasks.market_line import MarketLine
from client.tasks.market_ready import ReadyMarket, prepare
from common.tasks.markets import MarketsOptions
from common.tasks.markets_counts import Elsewhere
from common.tasks.markets_metrics import ScoreBlock, ranking_metrics

RIDGE = 10.0
"""λ of EASE, as in the exploration."""

Floats = NDArray[np.float32]

TITLES = {
    "degree": "*line:* degree (popularity)",
    "common": "*line:* common neighbours",
    "rare": "*line:* Adamic-Adar",
    "hops": "*line:* walk, binary, P² + ½P³ + ¼P⁴",
    "ease": "*line:* EASE on log counts (for SLIM), λ 10",
    "walk": "*line:* wRA, count-weighted walk of two hops",
}


def line_metrics(markets: Markets, protocol: str, seed: int) -> dict[str, dict[str, dict[str, float]]]:
    """Line -> market -> its metrics on the pairs held out for testing."""
    options = MarketsOptions.model_validate({"protocol": protocol, "features": "ids", "width": 2})
    told: dict[str, dict[str, dict[str, float]]] = {key: {} for key in TITLES}
    for market in markets.whole.markets:
        ready = prepare(market, markets.whole.goods, options, seed)
        for key, scores in lines(ready.graph).items():
            told[key][market.name] = measured(scores, ready)
    return told


def lines(graph: Graph) -> dict[str, ScoreBlock]:
    """Line -> its scores of all items."""
    line = line_of(graph)
    similar = _ease(line)
    return {
        "degree": line.popularity,
        "common": line.common_neighbours,
        "rare": line.adamic_adar,
        "hops": partial(_hops, line),
        "ease": lambda queries: similar[queries].copy(),
        "walk": line.scores,
    }


def line_of(graph: Graph) -> MarketLine:
    """Counts over a graph, of items without text, where nothing is shared."""
    size = len(graph.items)
    return MarketLine.of(graph, np.zeros((size, 0), np.float32), Elsewhere.nothing(size))


def measured(scores: ScoreBlock, ready: ReadyMarket) -> dict[str, float]:
    """On the pairs held out for testing."""
    return ranking_metrics(scores, ready.split.test.right, ready.masked("test"))[0]


def _hops(line: MarketLine, queries: NDArray[np.int64]) -> Floats:
    inverse = np.where(line.degree > 0, 1 / np.maximum(line.degree, 1), 0)
    P = csr_array(diags_array(inverse.astype(np.float32)) @ line.links)
    second: Floats = (P[queries] @ P).toarray()
    third: Floats = second @ P
    fourth: Floats = third @ P
    return (second + third / 2 + fourth / 4).astype(np.float32)


def _ease(line: MarketLine) -> Floats:
    """S = G·B of the graph's own rows, B = I − P/diag P, P = (GᵀG + λI)⁻¹ (Steck 2019), G = log(1 + W)."""
    G = np.log1p(line.weights.toarray()).astype(np.float64)
    P = np.linalg.inv(G.T @ G + RIDGE * np.eye(len(G)))
    B = -P / np.diag(P)
    np.fill_diagonal(B, 0)
    return (G @ B).astype(np.float32)
