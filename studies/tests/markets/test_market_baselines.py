"""Baselines against dense formulas."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from client.tasks.markets.data.graph import Graph, symmetric
from common.tasks.markets.pairs import counts_of as counts_of_market
from studies.markets.baselines import RIDGE, SCORES, counted, counts_of, slim
from studies.markets.experiments import OF_ONE, POOLED, PREFIX

SIZE = 9
ALL = np.arange(SIZE)


def graph() -> Graph:
    rng = np.random.default_rng(3)
    edges = np.argwhere(np.triu(rng.random((SIZE, SIZE)) < 0.4, 1))
    return Graph(ALL, symmetric(edges, rng.integers(1, 5, len(edges)).astype(np.float32), SIZE))


def scores(key: str, one: Graph | None = None) -> np.ndarray:
    return np.asarray(SCORES[key](counts_of(one or graph()))(ALL))


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


def test_every_baseline_has_scores() -> None:
    assert SCORES.keys() == OF_ONE.keys()
    assert {key.removeprefix(PREFIX) for key in POOLED} < OF_ONE.keys()


def test_pooled_counts_add_those_of_other_markets_for_a_markets_items() -> None:
    """A market of items 2, 5 and 7; another has 3 users of 2 and 7, and 9 of items that the first lacks."""
    weights = symmetric(np.array([[0, 1]]), np.array([4.0], np.float32), 3)
    others = counts_of_market(np.array([[1, 8], [2, 7]]), np.array([9.0, 3.0]), np.ones(SIZE), SIZE)
    market = Graph(np.array([2, 5, 7]), weights)
    found = counted("pooled-walk", market, others).weights.toarray()
    np.testing.assert_array_equal(found, [[0, 4, 3], [4, 0, 0], [3, 0, 0]])
    assert counted("walk", market, others) is market
