"""The graph of items against brute force, and its normalised adjacency."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from client.tasks.markets.data.graph import co_rated, graph_of, normalised, propagated, symmetric
from client.tasks.markets.data.markets import Market, Markets, as_pairs, as_ratings, no_rows

RATINGS = st.lists(st.tuples(st.integers(0, 5), st.integers(10, 16)), min_size=1, max_size=30)


@given(RATINGS, st.integers(1, 3))
def test_co_ratings_are_counted_as_by_hand(rows: list[tuple[int, int]], least: int) -> None:
    ratings = as_ratings(np.array(rows))
    baskets = [{item for user, item in rows if user == who} for who in {user for user, _ in rows}]
    expected = {}
    for a, b in combinations(sorted({item for _, item in rows}), 2):
        users = sum({a, b} <= basket for basket in baskets)
        if users >= least:
            expected[a, b] = users
    pairs, counts = co_rated(ratings, least)
    assert list(map(tuple, pairs.tolist())) == sorted(expected)
    assert counts.tolist() == [expected[a, b] for a, b in map(tuple, pairs.tolist())]


@given(RATINGS)
def test_a_graph_is_symmetric_without_loops_over_items_that_have_an_edge(rows: list[tuple[int, int]]) -> None:
    graph = graph_of(Market("uk", as_ratings(np.array(rows)), no_rows()), 1)
    W = graph.weights.toarray()
    np.testing.assert_array_equal(W, W.T)
    assert not W.diagonal().any()
    assert W.any(axis=1).all()
    assert len(graph.edges) == np.count_nonzero(W) / 2
    assert (graph.edges[:, 0] < graph.edges[:, 1]).all()


def test_lists_win_over_ratings() -> None:
    market = Market("uk", as_ratings(np.array([[0, 1], [0, 2], [1, 1], [1, 2]])), as_pairs(np.array([[7, 3], [3, 7]])))
    graph = graph_of(market, 2)
    assert graph.items.tolist() == [3, 7]
    assert graph.weights.toarray().tolist() == [[0, 1], [1, 0]]


def test_edges_can_be_taken_out() -> None:
    graph = graph_of(Market("uk", no_rows(), np.array([[0, 1], [1, 2], [2, 5]])), 1)
    left = graph.without(np.array([[1, 2]]))
    assert left.edges.tolist() == [[0, 1], [2, 3]]
    assert left.items.tolist() == graph.items.tolist()
    assert graph.without(no_rows()).edges.tolist() == graph.edges.tolist()


@given(st.integers(0, 2**32 - 1))
def test_the_normalised_adjacency_is_that_of_the_formula(seed: int) -> None:
    rng = np.random.default_rng(seed)
    edges = np.array(list(combinations(range(7), 2)))[rng.random(21) < 0.4]
    A = symmetric(edges, rng.integers(1, 5, len(edges)).astype(np.float32), 7)
    with_self = A.toarray() + np.eye(7)
    D = np.diag(with_self.sum(1) ** -0.5)
    S = normalised(A).toarray()
    np.testing.assert_allclose(S, D @ with_self @ D, atol=1e-6)
    assert np.abs(np.linalg.eigvalsh(S)).max() <= 1 + 1e-5
    X = rng.standard_normal((7, 3)).astype(np.float32)
    np.testing.assert_allclose(propagated(A, X, 3), S @ S @ S @ X, atol=1e-5)
    np.testing.assert_array_equal(propagated(A, X, 0), X)


def test_xmarket_s_graphs_are_those_of_the_exploration(xmarket: Markets) -> None:
    sizes = {market.name: graph_of(market, 2) for market in xmarket.units}
    assert {name: (len(graph.items), len(graph.edges)) for name, graph in sizes.items()} == {
        "ca": (2314, 19355),
        "uk": (1511, 14842),
        "fr": (957, 10673),
        "de": (1040, 8453),
        "mx": (784, 6619),
        "jp": (430, 1899),
        "in": (127, 528),
    }
