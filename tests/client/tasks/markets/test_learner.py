"""Markets learner: training queries, BPR triples, objectives and metrics."""

import numpy as np
import pytest
import torch

from client.tasks.markets.baseline import shrinkage_weight
from client.tasks.markets.data.markets import Market, Markets, no_rows
from common.models import parameters, tensors
from common.options import Scalar
from common.tasks.markets.pairs import DEGREES, FEATURES, GRAPH_FEATURES, KEYS, VALUES
from tests.support.build import learner_of
from tests.support.market_learners import DEMO, build_config, learner, one_and_rest, request

METRICS = {"mrr10", "mrr20", "ndcg10", "ndcg20", "recall20"}


def test_a_training_query_has_its_right_candidate_first() -> None:
    of = learner(rivals=6)
    batch = of.batch(request(of))
    numbers, weights = batch["numbers"], batch["weights"]
    assert numbers.shape[1:] == (7, len(FEATURES))
    assert weights.tolist() == [1.0] * (len(weights) - 1) + [0.0]
    walk, popular = numbers[:-1, :, FEATURES.index("walk")], numbers[:-1, :, FEATURES.index("new_degree")]
    has_walk = numbers[:-1, :, : len(GRAPH_FEATURES)].flatten(1).any(1)
    assert 0.05 < has_walk.float().mean() < 0.5
    assert walk[has_walk, 0].mean() > 1.5 * walk[has_walk, 1:].mean()
    assert popular[~has_walk, 0].mean() > popular[~has_walk, 1:].mean()


def test_the_scorer_s_loss_is_the_mean_cross_entropy_of_the_right_candidate() -> None:
    of = learner()
    batch, params = of.batch(request(of)), tensors(parameters(of.module))
    scores = batch["numbers"][:-1] @ params["scorer.weight"][0]
    by_hand = (torch.logsumexp(scores, 1) - scores[:, 0]).mean()
    torch.testing.assert_close(of.loss(params, batch, {}), by_hand)


def test_before_training_the_default_is_the_walk_for_queries_with_neighbors() -> None:
    of = learner()
    [market, *_] = of.markets
    baseline = market.baseline(market.graph, {})
    queries = np.flatnonzero(baseline.degree)
    kappa = shrinkage_weight(baseline.degree[queries], baseline.reach)[:, None]
    assert kappa.mean() > 0.7
    popular = np.log1p(baseline.degree - baseline.links[queries].toarray())
    ours = of.scores(parameters(of.module), {}, 0)(queries)
    np.testing.assert_allclose(
        ours, kappa * np.log1p(100 * baseline.scores(queries)) + (1 - kappa) * popular, rtol=1e-4
    )


@pytest.mark.parametrize("protocol", ["pairs", "users", "cold"])
@pytest.mark.parametrize("model", ["default", "paper"])
def test_metrics_come_with_their_number_of_queries(model: str, protocol: str) -> None:
    of = learner(model, protocol=protocol, validation_share=0.2, test_share=0.2)
    for split in ("test", "validation"):
        metrics, weights = of.evaluate(parameters(of.module), {}, split)
        assert set(metrics) == METRICS
        queries = sum(len(np.unique(m.split.right(split).nonzero()[0])) for m in of.markets)
        assert set(weights.values()) == {float(queries)}
        baselines, _ = of.baselines(split, {})
        assert set(baselines) == {"walk_mrr20", "walk_ndcg20", "degree_mrr20", "degree_ndcg20"}


def test_metrics_are_means_over_the_queries_of_all_markets() -> None:
    both, model = learner(), parameters(learner().module)
    rows = [learner_of(build_config(), DEMO.vocabulary, [market]).evaluate(model, {}, "test") for market in DEMO.units]
    total = sum(weights["mrr20"] for _, weights in rows)
    expected = sum(metrics["mrr20"] * weights["mrr20"] for metrics, weights in rows) / total
    assert both.evaluate(model, {}, "test")[0]["mrr20"] == pytest.approx(expected)


def test_cold_queries_are_uniform_among_items_of_other_markets() -> None:
    here, elsewhere = one_and_rest()
    [market] = here.markets
    familiar = market.other_counts(elsewhere.counts()).degrees > 0
    assert 0 < familiar.sum() < len(familiar)
    queries, candidates = market._draw_queries(market.graph.weights, familiar, None, np.random.default_rng(0))
    eligible = np.flatnonzero(familiar & (np.diff(market.graph.weights.indptr) > 0))
    counts = np.bincount(queries, minlength=len(familiar))
    assert set(np.flatnonzero(counts)) <= set(eligible)
    mean = len(queries) / len(eligible)
    assert np.abs(counts[eligible] - mean).max() < 6 * np.sqrt(mean), "uniform, independent of the degree"
    right = market.graph.weights[queries[:, None], candidates].toarray() > 0
    assert right[:, 0].all()
    assert not right[:, 1:].any()


def test_cold_items_of_other_markets_have_metrics_of_their_own() -> None:
    here, elsewhere = one_and_rest(protocol="cold", test_share=0.3)
    [market] = here.markets
    statics = elsewhere.counts()
    metrics, weights = here.evaluate(parameters(here.module), statics, "test")
    assert set(metrics) == METRICS | {f"seen_{key}" for key in METRICS}
    queries = np.flatnonzero(np.diff(market.split.test.right.indptr))
    seen = queries[np.isin(market.graph.items[queries], np.flatnonzero(statics[DEGREES]))]
    assert (weights["mrr20"], weights["seen_mrr20"]) == (len(queries), len(seen))
    baselines, _ = here.baselines("test", statics)
    assert {"degree_seen_mrr20", "shared_seen_ndcg20"} <= set(baselines)
    assert set(here.evaluate(parameters(here.module), {}, "test")[0]) == METRICS, "no counts are shared"


def test_triples_have_a_neighbor_and_a_negative_of_the_same_market() -> None:
    of = learner("paper")
    triples = of.triple_source.triples(torch.Generator().manual_seed(0))
    pairs = {frozenset(pair) for pair in of.triple_source.pairs.tolist()}
    sizes = [len(market.vectors) for market in of.markets]
    home = np.repeat(np.arange(len(sizes)), sizes)
    assert triples.shape == (64, 3)
    for anchor, neighbor, negative in triples.tolist():
        assert frozenset((anchor, neighbor)) in pairs
        assert frozenset((anchor, negative)) not in pairs
        assert anchor != negative
        assert home[anchor] == home[neighbor] == home[negative]
    assert of.examples == len(of.triple_source.pairs) == len(pairs)


def test_neighbors_and_negatives_are_uniform() -> None:
    path = Markets((Market("uk", no_rows(), np.array([[0, 1], [0, 2]])),), DEMO.vocabulary)
    of = learner("paper", path, batch=4000, test_share=0.01, fit_share=0.01)
    triples = of.triple_source.triples(torch.Generator().manual_seed(1))
    rows, counts = np.unique(triples.numpy(), axis=0, return_counts=True)
    shares = dict(zip(map(tuple, rows.tolist()), (counts / 4000).tolist(), strict=True))
    hub = {(0, 1, 1): 0.25, (0, 2, 2): 0.25}  # the hub has all items as neighbors
    assert shares == pytest.approx({**hub, (1, 0, 2): 0.25, (2, 0, 1): 0.25}, abs=0.03)


def test_the_paper_s_loss_is_bpr_on_inner_products() -> None:
    of = learner("paper")
    batch, params = of.batch(request(of)), tensors(parameters(of.module))
    inputs = {n: t[0] for n, t in of.step_inputs(1, torch.Generator().manual_seed(0)).items()}
    z = batch["propagated"].double() @ params["phi.mean"].double()
    a, b, c = z[inputs["triples"]].unbind(1)
    by_hand = -torch.log(torch.sigmoid((a * b).sum(1) - (a * c).sum(1))).mean()
    assert float(of.loss(params, batch, inputs)) == pytest.approx(float(by_hand), rel=1e-5)


@pytest.mark.parametrize("model", ["default", "paper"])
@pytest.mark.parametrize("options", [{}, {"bound_users": True}])
def test_a_market_without_pairs_takes_part_with_zeros(model: str, options: dict[str, Scalar]) -> None:
    of = learner(model, Markets((Market("uk", no_rows(), no_rows()),), DEMO.vocabulary), **options)
    assert not len(of.counts()[KEYS])
    inputs = {n: t[0] for n, t in of.step_inputs(1, torch.Generator()).items()}
    assert of.examples == 0
    assert of.evaluate(parameters(of.module), {}, "test") == ({}, {})
    loss = of.loss(tensors(parameters(of.module)), of.batch(request(of)), inputs)
    assert torch.isfinite(loss)


def test_counts_hold_training_pairs_only() -> None:
    of = learner()
    [market, *_] = of.markets
    V, items = len(DEMO.vocabulary.items), market.graph.items
    held = {(int(items[a]), int(items[b])) for a, b in zip(*market.split.test.right.nonzero(), strict=True)}
    assert not held & {(int(key) // V, int(key) % V) for key in market.counts[KEYS]}


def test_bounded_counts_are_the_same_again() -> None:
    first, again = (learner(bound_users=True).counts() for _ in range(2))
    assert all((first[name] == again[name]).all() for name in first)
    assert first[VALUES].min() < 1
