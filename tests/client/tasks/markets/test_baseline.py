"""Baselines and features of a market's graph against dense formulas and reduced graphs."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from client.tasks.markets import baseline as multiplying
from client.tasks.markets.baseline import (
    FULL_WEIGHT,
    NEAREST,
    MarketBaseline,
    product,
    scorer_features,
    shrinkage_weight,
    text_neighbors,
    tiles,
    times_transposed,
)
from client.tasks.markets.data.graph import Graph, Sparse, symmetric
from common.tasks.markets.blend import START
from common.tasks.markets.model import PairScorer
from common.tasks.markets.pairs import COLD_FEATURES, FEATURES, GRAPH_FEATURES, OtherMarketCounts, counts_of

SIZE = 12
ALL = np.arange(SIZE)


def graph(seed: int = 0, share: float = 0.3) -> Graph:
    rng = np.random.default_rng(seed)
    edges = np.argwhere(np.triu(rng.random((SIZE, SIZE)) < share, 1))
    edges = edges[(edges != 0).all(axis=1)]  # item 0 is cold: it has no edge
    return Graph(ALL, symmetric(edges, rng.integers(1, 6, len(edges)).astype(np.float32), SIZE))


def other_counts(seed: int = 1) -> OtherMarketCounts:
    edges = graph(seed).edges
    pairs = np.concatenate([[[0, 1], [0, 2]], edges])
    values, degrees = np.random.default_rng(seed).integers(1, 9, len(pairs)), np.arange(SIZE)
    return OtherMarketCounts.of(counts_of(pairs, values, degrees, SIZE), ALL)


def baseline(of: Graph | None = None) -> MarketBaseline:
    texts = np.random.default_rng(2).standard_normal((SIZE, 5)).astype(np.float32)
    return MarketBaseline.of(of or graph(), texts, other_counts())


def columns(of: MarketBaseline) -> dict[str, np.ndarray]:
    return dict(zip(FEATURES, of.features(ALL), strict=True))


def test_the_walk_is_w_d_inverse_w() -> None:
    W = graph().weights.toarray().astype(float)
    D = np.diag([1 / s if s else 0 for s in W.sum(1)])
    np.testing.assert_allclose(baseline().scores(ALL), W @ D @ W, rtol=1e-5)


def test_features_are_those_of_the_dense_formulas() -> None:
    W = graph().weights.toarray().astype(float)
    A, values = (W > 0).astype(float), columns(baseline())
    D = np.diag([1 / s if s else 0 for s in W.sum(1)])
    rare = np.diag([1 / np.log(d) if d > 1 else 0 for d in A.sum(1)])
    off = ~np.eye(SIZE, dtype=bool) & (A.sum(1) > 0)[:, None]  # an item is never a candidate for itself
    degrees = np.sqrt(np.maximum(np.outer(A.sum(1), A.sum(1)), 1))
    expected = {
        "walk": np.log1p(100 * W @ D @ W),
        "far_walk": np.log1p(100 * W @ D @ W @ D @ W),
        "common": np.log1p(A @ A),
        "rare_common": np.log1p(A @ rare @ A),
        "overlap": A @ A / degrees,
        "degree": np.log1p(A.sum(1)) + np.zeros_like(A),
        "strength": np.log1p(W.sum(1)) + np.zeros_like(A),
        "elsewhere": np.log1p(other_counts().pairs.toarray()),
        "neighbor_text": A / np.maximum(A.sum(1), 1)[:, None] @ baseline().texts @ baseline().texts.T,
    }
    for name, x in expected.items():
        np.testing.assert_allclose(values[name][off], x[off], rtol=1e-4, atol=1e-5, err_msg=name)


def test_either_group_of_features_is_zero() -> None:
    values = columns(baseline())
    assert not any(values[name][0].any() for name in GRAPH_FEATURES)
    assert not any(values[name][1:].any() for name in COLD_FEATURES)
    assert all(values[name][0].any() for name in COLD_FEATURES)


def test_cold_features_are_those_of_the_graph_without_the_item_s_edges() -> None:
    whole, query = graph(), 4
    gone = whole.edges[(whole.edges == query).any(axis=1)]
    assert len(gone) > 1
    alone = columns(baseline(whole.without(gone)))
    cold = dict(zip(COLD_FEATURES, baseline(whole).cold_features(np.array([query])), strict=True))
    is_other = query != ALL
    for name in ("new_degree", "new_text", "new_elsewhere", "new_degree_elsewhere"):
        np.testing.assert_allclose(cold[name][0][is_other], alone[name][query][is_other], rtol=1e-5, err_msg=name)


def test_a_new_item_is_ranked_by_the_pairs_of_the_items_with_the_nearest_texts() -> None:
    of = baseline()
    values = dict(zip(COLD_FEATURES, of.cold_features(ALL[:1]), strict=True))
    W, similar = of.weights.toarray(), np.maximum((of.texts[:1] @ of.texts.T)[0], 0)
    similar[0] = 0
    near = similar / similar.sum()  # fewer than ten texts are similar
    here = near @ (W / np.maximum(W.sum(1), 1)[:, None])
    np.testing.assert_allclose(values["new_text_walk"][0], np.log1p(100 * here), rtol=1e-4)
    elsewhere = near @ other_counts().pairs.toarray()
    np.testing.assert_allclose(values["new_text_elsewhere"][0], np.log1p(elsewhere), rtol=1e-4)


def test_before_training_the_scorer_mixes_walk_and_popularity_by_the_shrinkage_weight() -> None:
    of = baseline(graph(share=0.5))
    weight = PairScorer().scorer.weight.detach().numpy()[0]
    assert {name: w for name, w in zip(FEATURES, weight.tolist(), strict=True) if w} == START
    kappa = shrinkage_weight(of.degree, of.reach)[:, None]
    popular = np.log1p(of.degree - of.links.toarray())
    by_hand = kappa * np.log1p(100 * of.scores(ALL)) + (1 - kappa) * popular
    np.testing.assert_allclose(of.weighted_scores(ALL, weight), by_hand, rtol=1e-5)
    np.testing.assert_allclose(of.weighted_scores(ALL, weight)[0], np.log1p(of.popularity(ALL)[0]), rtol=1e-6)


def test_the_score_is_the_weighted_sum_of_all_features_for_warm_and_cold_queries() -> None:
    of, weight = baseline(graph(share=0.5)), np.random.default_rng(5).standard_normal(len(FEATURES)).astype(np.float32)
    queries, warm_weights = np.array([4, 0, 9, 2]), weight[: len(GRAPH_FEATURES)]
    kappa = shrinkage_weight(of.degree[queries], of.reach)[:, None]
    assert 0 == kappa[1, 0] < kappa[0, 0] < FULL_WEIGHT
    edges = np.einsum(
        "f,fbn->bn", warm_weights.astype(float), np.stack(list(of.features(queries))[: len(GRAPH_FEATURES)])
    )
    cold = np.einsum(
        "f,fbn->bn", weight[len(GRAPH_FEATURES) :].astype(float), np.stack(list(of.cold_features(queries)))
    )
    np.testing.assert_allclose(
        of.weighted_scores(queries, weight), kappa * edges + (1 - kappa) * cold, rtol=1e-4, atol=1e-5
    )


def test_the_shrinkage_weight_grows_with_closed_triangles_and_degree() -> None:
    def reach(edges: list[tuple[int, int]]) -> float:
        return baseline(Graph(ALL, symmetric(np.array(edges), np.ones(len(edges), np.float32), SIZE))).reach

    star, triangle = [(0, k) for k in range(1, 6)], [(1, 2), (1, 3), (2, 3)]
    assert (reach(star), reach(triangle)) == (1 / 7, 4 / 5)
    assert reach([*triangle, (3, 4)]) == 4 / 6
    assert baseline(Graph(ALL, symmetric(np.zeros((0, 2), np.int64), np.zeros(0, np.float32), SIZE))).reach == 0.5
    degree = np.arange(4, dtype=np.float32)
    assert not shrinkage_weight(degree, 0.0).any()
    assert shrinkage_weight(degree, 1.0).tolist() == [0, 1, 1, 1]
    np.testing.assert_allclose(shrinkage_weight(degree, 0.5), degree / (degree + 4), rtol=1e-6)


def test_at_full_weight_the_scores_are_those_of_the_graph_features() -> None:
    whole = replace(baseline(graph(share=1.0)), reach=1.0)
    weight = np.random.default_rng(5).standard_normal(len(FEATURES)).astype(np.float32)
    expected = np.einsum("f,fbn->bn", weight.astype(float), np.stack(list(whole.features(ALL[1:]))))
    np.testing.assert_allclose(whole.weighted_scores(ALL[1:], weight), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_cold", [False, True])
def test_features_of_candidates_are_the_rows_of_all(is_cold: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("client.tasks.markets.baseline.BLOCK_NUMBERS", 2 * SIZE)
    queries, candidates = np.array([3, 0, 5]), np.array([[1, 2], [4, 9], [0, 11]])
    features = scorer_features(baseline(), queries, candidates, is_cold=is_cold)
    whole = list(baseline().cold_features(ALL) if is_cold else baseline().features(ALL))
    first = len(GRAPH_FEATURES) if is_cold else 0
    assert not features[:, :, :first].any()
    for f, x in enumerate(whole, start=first):
        np.testing.assert_allclose(features[:, :, f], x[queries[:, None], candidates], rtol=1e-6)


def test_the_shared_baseline_adds_popularity_and_pairs_of_other_markets() -> None:
    of = baseline()
    pairs = other_counts().pairs.toarray()
    expected = of.degree / of.degree.max() + pairs[0] / pairs[0].max()
    np.testing.assert_allclose(of.shared(np.array([0]))[0], expected, rtol=1e-6)


def drawn(rows: int, columns: int, share: float, seed: int) -> Sparse:
    rng = np.random.default_rng(seed)
    dense = rng.integers(1, 9, (rows, columns)) * (rng.random((rows, columns)) < share)
    return csr_array(dense.astype(np.float32))


@given(st.integers(0, 5), st.integers(1, 9), st.sampled_from([0.0, 0.2, 0.9]), st.integers(0, 99))
def test_a_product_is_that_of_the_dense_matrices(rows: int, size: int, share: float, seed: int) -> None:
    left, right = drawn(rows, size, share, seed), drawn(size, size, share, seed + 1)
    found = product(left, right)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, left.toarray() @ right.toarray())


@pytest.mark.parametrize("terms", [1, 7, 30])
def test_few_terms_held_at_once_make_the_same_product(terms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiplying, "TERMS", terms)
    left, right = drawn(8, 12, 0.3, 0), drawn(12, 12, 0.4, 1)
    np.testing.assert_array_equal(product(left, right), left.toarray() @ right.toarray())


@pytest.mark.parametrize("tile", [1, 5, 12, 100])
def test_rows_pass_through_all_tiles(tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiplying, "TILE", tile)
    rows, matrix = drawn(4, 12, 0.7, 2).toarray(), drawn(12, 12, 0.4, 3)
    cut = tiles(matrix)
    assert [one.shape[1] for one in cut] == [min(tile, 12 - first) for first in range(0, 12, tile)]
    np.testing.assert_array_equal(times_transposed(cut, rows), rows @ matrix.toarray().T)


def test_the_nearest_texts_have_shares_by_their_similarity_and_a_query_is_not_among_them() -> None:
    similarity = np.array([[0.2, 1.0, 0.6, -0.5]], np.float32)
    near = text_neighbors(similarity, np.array([1])).toarray()
    np.testing.assert_allclose(near, [[0.25, 0, 0.75, 0]], rtol=1e-6)
    assert similarity[0, 1] == 1


def test_no_more_than_the_nearest_count() -> None:
    similarity = np.linspace(0.1, 0.9, 30, dtype=np.float32)[None]
    near = text_neighbors(similarity, np.array([29])).toarray()[0]
    assert np.flatnonzero(near).tolist() == list(range(29 - NEAREST, 29))
    np.testing.assert_allclose(near.sum(), 1, rtol=1e-6)


def test_items_without_texts_have_no_neighbors() -> None:
    assert text_neighbors(np.zeros((2, 5), np.float32), np.array([0, 3])).nnz == 0
