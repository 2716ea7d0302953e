"""Baselines against dense formulas, and a market that joins with part of its pairs."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from client.data.read import read_all
from client.tasks.markets.data.graph import Graph, symmetric
from client.tasks.markets.learner import ReadyMarket, prepare
from common.tasks.markets.counts import FEATURES, no_counts
from common.tasks.markets.counts import counts_of as summed_counts
from common.tasks.markets.options import MarketsOptions
from studies.markets.baselines import RIDGE, SCORES, counts_of, measure, slim
from studies.markets.experiments import BASELINES
from studies.markets.late_market import _drop_pairs, _without_items

SIZE = 9
ALL = np.arange(SIZE)


def graph() -> Graph:
    rng = np.random.default_rng(3)
    edges = np.argwhere(np.triu(rng.random((SIZE, SIZE)) < 0.4, 1))
    return Graph(ALL, symmetric(edges, rng.integers(1, 5, len(edges)).astype(np.float32), SIZE))


def scores(key: str, one: Graph | None = None) -> np.ndarray:
    return np.asarray(SCORES[key](counts_of(one or graph()))(ALL))


@pytest.fixture(scope="module")
def ready() -> ReadyMarket:
    demo = read_all("markets", "demo:3-4")
    return prepare(demo.units[0], demo.vocabulary, MarketsOptions(width=2), 0)


def test_the_binary_walk_is_three_hops_of_the_random_walk() -> None:
    A = (graph().weights.toarray() > 0).astype(float)
    P = A / A.sum(1, keepdims=True)
    expected = P @ P + P @ P @ P / 2 + P @ P @ P @ P / 4
    np.testing.assert_allclose(scores("hops"), expected, rtol=1e-5)


def test_ease_solves_ridge_regression_with_a_zero_diagonal() -> None:
    """Column by column: item j from all others, (G₋ⱼᵀG₋ⱼ + λI)⁻¹ G₋ⱼᵀ gⱼ."""
    G = np.log1p(graph().weights.toarray().astype(float))
    expected = np.zeros_like(G)
    for j in range(SIZE):
        rest = G[:, j != ALL]
        weights = np.linalg.solve(rest.T @ rest + RIDGE * np.eye(SIZE - 1), rest.T @ G[:, j])
        expected[:, j] = rest @ weights
    np.testing.assert_allclose(scores("ease"), expected, rtol=1e-4, atol=1e-6)


def descended(G: np.ndarray, shrinkage: float, sparsity: float) -> np.ndarray:
    """SLIM by coordinate descent on the dense matrix, over all columns, one weight at a time."""
    B, size = np.zeros((len(G), len(G))), len(G)
    for j in range(size):
        for _ in range(500):
            for i in (k for k in range(size) if k != j):
                left = G[:, j] - G @ B[:, j] + G[:, i] * B[i, j]
                B[i, j] = max(0.0, G[:, i] @ left - sparsity) / (G[:, i] @ G[:, i] + shrinkage)
    return B


@pytest.mark.parametrize(("shrinkage", "sparsity"), [(10.0, 0.1), (0.5, 2.0)])
def test_slim_is_a_non_negative_elastic_net_of_each_column(shrinkage: float, sparsity: float) -> None:
    G = np.log1p(graph().weights.toarray().astype(float))
    B = slim(csr_array(G), shrinkage, sparsity).toarray()
    np.testing.assert_allclose(B, descended(G, shrinkage, sparsity), atol=2e-3)
    assert B.min() == 0
    assert B.max() > 0.05
    assert not np.diag(B).any()


def test_slim_keeps_the_columns_that_share_most() -> None:
    G = np.log1p(graph().weights.toarray().astype(float))
    shared = G.T @ G - np.diag(np.diag(G.T @ G))
    B = slim(csr_array(G), nearest=2).toarray()
    for j in range(SIZE):
        assert set(np.flatnonzero(B[:, j])) <= set(np.argsort(-shared[:, j], kind="stable")[:2])


def test_scores_of_slim_are_log_counts_times_its_weights() -> None:
    G = csr_array(np.log1p(graph().weights.toarray().astype(float)))
    np.testing.assert_allclose(scores("slim"), (G @ slim(G)).toarray(), rtol=1e-6)
    assert not scores("slim", Graph(ALL, csr_array((SIZE, SIZE), dtype=np.float32))).any(), "no pair, no weight"


def test_a_market_with_fewer_pairs_has_the_same_queries(ready: ReadyMarket) -> None:
    some = _drop_pairs(ready, 0.3, np.random.default_rng(0))
    assert len(some.graph.edges) == int(0.3 * len(ready.graph.edges))
    assert (some.split.test.right != ready.split.test.right).nnz == 0
    assert (some.masked("test") != ready.masked("test")).nnz == 0
    assert {tuple(edge) for edge in some.graph.edges.tolist()} <= {tuple(edge) for edge in ready.graph.edges.tolist()}
    assert measure("walk", some)["mrr20"] < measure("walk", ready)["mrr20"]


def test_every_baseline_has_scores() -> None:
    assert SCORES.keys() == BASELINES.keys()


def test_cold_items_are_the_only_queries_and_have_no_pairs() -> None:
    model = {"scorer.weight": np.array([[float(name == "new_elsewhere") for name in FEATURES]], np.float32)}
    neighbours = graph().weights[[4]].indices
    counts = summed_counts(
        np.array([[min(4, b), max(4, b)] for b in sorted(neighbours)]), np.ones(len(neighbours)), ALL, SIZE
    )
    informed = _without_items(graph(), np.array([4]), model, counts)
    assert (informed["queries"], informed["scorer_mrr20"], informed["scorer_ndcg20"]) == (1, 1, pytest.approx(1))
    assert informed["walk_mrr20"] < 1
    alone = _without_items(graph(), np.array([4]), model, no_counts(SIZE))
    assert alone["scorer_ndcg20"] < 1
    assert alone["degree_ndcg20"] == informed["degree_ndcg20"]
