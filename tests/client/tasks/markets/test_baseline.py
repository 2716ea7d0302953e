"""Lines and features of a market's graph against dense formulas, and against graphs that really lack what they leave out."""

from dataclasses import replace

import numpy as np
import pytest

from client.tasks.markets.baseline import MarketBaseline, scorer_features
from client.tasks.markets.data.graph import Graph, symmetric
from client.tasks.markets.shrinkage import SURE, shrinkage_weight
from common.tasks.markets.counts import Elsewhere, counts_of
from common.tasks.markets.models.pair_scorer import FEATURES, KNOWN, NEW, START, PairScorer

SIZE = 12
ALL = np.arange(SIZE)


def graph(seed: int = 0, share: float = 0.3) -> Graph:
    rng = np.random.default_rng(seed)
    edges = np.argwhere(np.triu(rng.random((SIZE, SIZE)) < share, 1))
    edges = edges[(edges != 0).all(axis=1)]  # item 0 is new: it has no edge
    return Graph(ALL, symmetric(edges, rng.integers(1, 6, len(edges)).astype(np.float32), SIZE))


def elsewhere(seed: int = 1) -> Elsewhere:
    edges = graph(seed).edges
    pairs = np.concatenate([[[0, 1], [0, 2]], edges])
    values, degrees = np.random.default_rng(seed).integers(1, 9, len(pairs)), np.arange(SIZE)
    return Elsewhere.of(counts_of(pairs, values, degrees, SIZE), ALL)


def line(of: Graph | None = None) -> MarketBaseline:
    texts = np.random.default_rng(2).standard_normal((SIZE, 5)).astype(np.float32)
    return MarketBaseline.of(of or graph(), texts, elsewhere())


def columns(of: MarketBaseline) -> dict[str, np.ndarray]:
    return dict(zip(FEATURES, of.features(ALL), strict=True))


def test_the_walk_is_w_d_inverse_w() -> None:
    W = graph().weights.toarray().astype(float)
    D = np.diag([1 / s if s else 0 for s in W.sum(1)])
    np.testing.assert_allclose(line().scores(ALL), W @ D @ W, rtol=1e-5)


def test_features_are_those_of_the_dense_formulas() -> None:
    W = graph().weights.toarray().astype(float)
    A, found = (W > 0).astype(float), columns(line())
    D = np.diag([1 / s if s else 0 for s in W.sum(1)])
    rare = np.diag([1 / np.log(d) if d > 1 else 0 for d in A.sum(1)])
    off = ~np.eye(SIZE, dtype=bool) & (A.sum(1) > 0)[:, None]  # an item and itself is never asked for
    degrees = np.sqrt(np.maximum(np.outer(A.sum(1), A.sum(1)), 1))
    expected = {
        "walk": np.log1p(100 * W @ D @ W),
        "far_walk": np.log1p(100 * W @ D @ W @ D @ W),
        "common": np.log1p(A @ A),
        "rare_common": np.log1p(A @ rare @ A),
        "overlap": A @ A / degrees,
        "degree": np.log1p(A.sum(1)) + np.zeros_like(A),
        "strength": np.log1p(W.sum(1)) + np.zeros_like(A),
        "elsewhere": np.log1p(elsewhere().pairs.toarray()),
    }
    for name, values in expected.items():
        np.testing.assert_allclose(found[name][off], values[off], rtol=1e-4, atol=1e-5, err_msg=name)


def test_either_group_of_features_is_zero() -> None:
    found = columns(line())
    assert not any(found[name][0].any() for name in KNOWN)
    assert not any(found[name][1:].any() for name in NEW)
    assert all(found[name][0].any() for name in NEW)


def test_an_item_taken_as_new_looks_as_without_its_edges() -> None:
    whole, query = graph(), 4
    gone = whole.edges[(whole.edges == query).any(axis=1)]
    assert len(gone) > 1
    alone = columns(line(whole.without(gone)))
    taken = dict(zip(NEW, line(whole).as_new(np.array([query])), strict=True))
    others = query != ALL
    for name in ("new_degree", "new_text", "new_elsewhere", "new_degree_elsewhere"):
        np.testing.assert_allclose(taken[name][0][others], alone[name][query][others], rtol=1e-5, err_msg=name)


def test_before_training_the_scorer_is_the_walk_as_far_as_edges_are_believed_and_else_popularity() -> None:
    of = line(graph(share=0.5))
    weight = PairScorer().scorer.weight.detach().numpy()[0]
    assert {name: w for name, w in zip(FEATURES, weight.tolist(), strict=True) if w} == START
    kappa = shrinkage_weight(of.degree, of.reach)[:, None]
    popular = np.log1p(of.degree - of.links.toarray())
    by_hand = kappa * np.log1p(100 * of.scores(ALL)) + (1 - kappa) * popular
    np.testing.assert_allclose(of.weighed(ALL, weight), by_hand, rtol=1e-5)
    np.testing.assert_allclose(of.weighed(ALL, weight)[0], np.log1p(of.popularity(ALL)[0]), rtol=1e-6)


def test_the_scorer_s_sum_is_that_of_all_features_for_known_and_new_queries() -> None:
    of, weight = line(graph(share=0.5)), np.random.default_rng(5).standard_normal(len(FEATURES)).astype(np.float32)
    queries, known = np.array([4, 0, 9, 2]), weight[: len(KNOWN)]
    kappa = shrinkage_weight(of.degree[queries], of.reach)[:, None]
    assert 0 == kappa[1, 0] < kappa[0, 0] < SURE
    edges = np.einsum("f,fbn->bn", known.astype(float), np.stack(list(of.features(queries))[: len(KNOWN)]))
    as_new = np.einsum("f,fbn->bn", weight[len(KNOWN) :].astype(float), np.stack(list(of.as_new(queries))))
    np.testing.assert_allclose(of.weighed(queries, weight), kappa * edges + (1 - kappa) * as_new, rtol=1e-4, atol=1e-5)


def test_edges_are_believed_where_pairs_close_triangles_and_the_more_the_more_there_are() -> None:
    def reached(edges: list[tuple[int, int]]) -> float:
        return line(Graph(ALL, symmetric(np.array(edges), np.ones(len(edges), np.float32), SIZE))).reach

    star, triangle = [(0, k) for k in range(1, 6)], [(1, 2), (1, 3), (2, 3)]
    assert (reached(star), reached(triangle)) == (1 / 7, 4 / 5)
    assert reached([*triangle, (3, 4)]) == 4 / 6
    assert line(Graph(ALL, symmetric(np.zeros((0, 2), np.int64), np.zeros(0, np.float32), SIZE))).reach == 0.5
    degree = np.arange(4, dtype=np.float32)
    assert not shrinkage_weight(degree, 0.0).any()
    assert shrinkage_weight(degree, 1.0).tolist() == [0, 1, 1, 1]
    np.testing.assert_allclose(shrinkage_weight(degree, 0.5), degree / (degree + 4), rtol=1e-6)


def test_a_grown_market_s_scores_are_those_of_its_edges_alone() -> None:
    whole = replace(line(graph(share=1.0)), reach=1.0)
    weight = np.random.default_rng(5).standard_normal(len(FEATURES)).astype(np.float32)
    known = np.einsum("f,fbn->bn", weight.astype(float), np.stack(list(whole.features(ALL[1:]))))
    np.testing.assert_allclose(whole.weighed(ALL[1:], weight), known, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("new", [False, True])
def test_features_of_candidates_are_the_rows_of_all(new: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("client.tasks.markets.baseline.AT_ONCE", 2 * SIZE)
    queries, candidates = np.array([3, 0, 5]), np.array([[1, 2], [4, 9], [0, 11]])
    found = scorer_features(line(), queries, candidates, new=new)
    whole = list(line().as_new(ALL) if new else line().features(ALL))
    first = len(KNOWN) if new else 0
    assert not found[:, :, :first].any()
    for f, x in enumerate(whole, start=first):
        np.testing.assert_allclose(found[:, :, f], x[queries[:, None], candidates], rtol=1e-6)


def test_the_shared_line_adds_up_popularity_and_others_pairs() -> None:
    of = line()
    pairs = elsewhere().pairs.toarray()
    expected = of.degree / of.degree.max() + pairs[0] / pairs[0].max()
    np.testing.assert_allclose(of.shared(np.array([0]))[0], expected, rtol=1e-6)
