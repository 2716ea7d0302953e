"""Statistics of a market for its closed form: derivatives of the loss, and metrics of choices."""

from functools import partial

import numpy as np
from scipy.sparse import csr_array, diags_array

from client.tasks.markets.baseline import MarketBaseline
from client.tasks.markets.data.graph import Sparse
from client.tasks.markets.learner import ReadyMarket
from common.arrays import Arrays, Flags
from common.tasks.markets import blend
from common.tasks.markets.metrics import ranking_metrics

MOST_QUERIES = 500
"""Largest number of items that are ranked for as if they were new, evenly spaced."""


def derivatives(market: ReadyMarket, fitted: MarketBaseline, full: MarketBaseline, solved: Arrays) -> Arrays:
    """Return gradient and Hessian of the cross-entropy at the weights of each λ.

    A market of n queries has weight √n, the last column of the gradient. Queries are items at even positions.

    Args:
        market: Market.
        fitted: Features of the graph without the pairs of `split.fit`.
        full: Features of the training graph.
        solved: What is solved.
    """
    is_query = _is_even(market)
    x = market.features_of(fitted, full, is_query, is_query & _is_familiar(full)).astype(np.float64)
    statistics = {name: np.zeros(a.shape) for name, a in blend.template(solved).items()}
    share = 1 / np.sqrt(max(len(x), 1))
    for k, weights in enumerate(solved[blend.CANDIDATES]):
        scores = x @ weights
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        p = odds / odds.sum(axis=1, keepdims=True)
        mean = (p[..., None] * x).sum(axis=1)
        squares = np.tensordot(p[..., None] * x, x, ((0, 1), (0, 1))) - mean.T @ mean
        statistics[blend.GRADIENT][k] = share * np.append((mean - x[:, 0]).sum(axis=0), len(x))
        statistics[blend.HESSIAN][k] = share * squares
    return statistics


def quality(market: ReadyMarket, fitted: MarketBaseline, full: MarketBaseline, solved: Arrays) -> Arrays:
    """Return √n times the mean of MRR@20 and NDCG@20 over n queries by each choice, 2 × (L + 2).

    Queries are items at odd positions: first those with pairs of `split.fit`, then items as if they were new.
    """
    is_query, choices = ~_is_even(market), blend.choices(solved).astype(np.float32)
    warm = _rows(market.split.fit.right, is_query)
    familiar = np.flatnonzero(is_query & _is_familiar(full) & (full.degree > 0))
    is_new = np.zeros(len(is_query), bool)
    is_new[familiar[:: max(1, -(-len(familiar) // MOST_QUERIES))]] = True
    cold = _rows(market.graph.weights, is_new)
    table = np.zeros((2, len(choices)))
    for c, weight in enumerate(choices):
        ranked = partial(fitted.graph_scores, weight=weight), partial(full.cold_scores, weight=weight)
        found = [
            ranking_metrics(ranked[0], warm, fitted.weights),
            ranking_metrics(ranked[1], cold, csr_array(cold.shape)),
        ]
        table[:, c] = [_weigh(metrics, count) for metrics, count in found]
    return {blend.QUALITY: table}


def _weigh(metrics: dict[str, float], queries: int) -> float:
    """Return the weighted mean of MRR@20 and NDCG@20; 0 without queries."""
    return float(np.sqrt(queries) * (metrics["mrr20"] + metrics["ndcg20"]) / 2) if queries else 0.0


def _is_even(market: ReadyMarket) -> Flags:
    return np.asarray(np.arange(len(market.graph.items)) % 2 == 0)


def _is_familiar(full: MarketBaseline) -> Flags:
    """Return True for items of other markets; for all items if no other market has one of them."""
    is_found: Flags = np.asarray(full.other_counts.degrees > 0)
    return is_found if is_found.any() else ~is_found


def _rows(matrix: Sparse, is_row: Flags) -> Sparse:
    """Return a matrix with the other rows emptied."""
    rows = csr_array(diags_array(is_row.astype(np.float32)) @ matrix)
    rows.eliminate_zeros()
    return rows
