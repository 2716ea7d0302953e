"""The markets task on a client: what it trains on, its objectives, its metrics, and what it adds to the sums."""

import numpy as np
import pytest
import torch

from client.tasks.markets.data.counts import bounded_counts
from client.tasks.markets.data.markets import Market, Markets, no_rows
from client.tasks.markets.data.reader import read_markets
from client.tasks.markets.learner import MarketsLearner
from client.tasks.markets.shrinkage import shrinkage_weight
from common.arrays import Arrays
from common.config.parse import parse
from common.config.run import RunConfig
from common.models import parameters, tensors
from common.options import Scalar
from common.tasks.markets.counts import DEGREES, KEYS, VALUES, add_pairs, check_pairs, no_counts
from common.tasks.markets.models.pair_scorer import FEATURES, KNOWN
from common.wire.messages import TrainRequest
from tests.support.build import learner_of

DEMO = read_markets("demo:3-6")
NOTHING = no_counts(len(DEMO.vocabulary.items))
METRICS = {"mrr10", "mrr20", "ndcg10", "ndcg20", "recall20"}


def configured(model: str = "default", **options: Scalar) -> RunConfig:
    markets = {f"tasks.markets.{key.replace('_', '-')}": value for key, value in options.items()}
    small = {"tasks.markets.width": 32, "tasks.markets.embedding": 8, "tasks.markets.batch": 64}
    return parse({"method": "fedavg", "task": "markets", "model": model, **small, **markets})


def learner(model: str = "default", part: Markets = DEMO, **options: Scalar) -> MarketsLearner:
    return learner_of(configured(model, **options), part.vocabulary, part.units)


def request(of: MarketsLearner, statics: Arrays | None = None) -> TrainRequest:
    return TrainRequest(1, "toy:0", parameters(of.module), statics=statics or {})


def test_what_the_scorer_is_asked_has_the_right_answer_first() -> None:
    of = learner(rivals=6)
    batch = of.batch(request(of))
    numbers, weights = batch["numbers"], batch["weights"]
    assert numbers.shape[1:] == (7, len(FEATURES))
    assert weights.tolist() == [1.0] * (len(weights) - 1) + [0.0]
    walk, popular = numbers[:-1, :, FEATURES.index("walk")], numbers[:-1, :, FEATURES.index("new_degree")]
    known = numbers[:-1, :, : len(KNOWN)].flatten(1).any(1)
    assert 0.05 < known.float().mean() < 0.5
    assert walk[known, 0].mean() > 1.5 * walk[known, 1:].mean()
    assert popular[~known, 0].mean() > popular[~known, 1:].mean()


def test_the_scorer_s_loss_is_the_mean_cross_entropy_of_the_right_candidate() -> None:
    of = learner()
    batch, params = of.batch(request(of)), tensors(parameters(of.module))
    scores = batch["numbers"][:-1] @ params["scorer.weight"][0]
    by_hand = (torch.logsumexp(scores, 1) - scores[:, 0]).mean()
    torch.testing.assert_close(of.loss(params, batch, {}), by_hand)


def test_before_training_the_default_follows_the_walk_where_queries_have_neighbours() -> None:
    of = learner()
    [market, *_] = of.markets
    line = market.line(market.graph, {})
    known = np.flatnonzero(line.degree)
    kappa = shrinkage_weight(line.degree[known], line.reach)[:, None]
    assert kappa.mean() > 0.7
    popular = np.log1p(line.degree - line.links[known].toarray())
    ours = of.scores(parameters(of.module), {}, 0)(known)
    np.testing.assert_allclose(ours, kappa * np.log1p(100 * line.scores(known)) + (1 - kappa) * popular, rtol=1e-4)


@pytest.mark.parametrize("protocol", ["pairs", "users", "cold"])
@pytest.mark.parametrize("model", ["default", "paper"])
def test_metrics_are_told_with_their_queries(model: str, protocol: str) -> None:
    of = learner(model, protocol=protocol, validation_share=0.2, test_share=0.2)
    for split in ("test", "validation"):
        metrics, weights = of.evaluate(parameters(of.module), {}, split)
        assert set(metrics) == METRICS
        queries = sum(len(np.unique(m.split.right(split).nonzero()[0])) for m in of.markets)
        assert set(weights.values()) == {float(queries)}
        lines, _ = of.baselines(split, {})
        assert set(lines) == {"walk_mrr20", "walk_ndcg20", "degree_mrr20", "degree_ndcg20"}


def test_metrics_are_means_over_the_queries_of_all_markets() -> None:
    both, model = learner(), parameters(learner().module)
    rows = [learner_of(configured(), DEMO.vocabulary, [market]).evaluate(model, {}, "test") for market in DEMO.units]
    total = sum(weights["mrr20"] for _, weights in rows)
    expected = sum(metrics["mrr20"] * weights["mrr20"] for metrics, weights in rows) / total
    assert both.evaluate(model, {}, "test")[0]["mrr20"] == pytest.approx(expected)


def test_its_own_part_of_the_sums_tells_a_market_nothing() -> None:
    of = learner(count_offset=True)
    own = of.counts()
    check_pairs(own, len(DEMO.vocabulary.items))
    alone = learner_of(configured(), DEMO.vocabulary, DEMO.units[:1])
    [market] = alone.markets
    others = alone.without_own(add_pairs([alone.counts(), NOTHING]), alone.counts())
    for name, x in zip(FEATURES, market.line(market.graph, others).features(np.arange(5)), strict=True):
        if "elsewhere" in name or name == "new_detour":
            assert not x.any()
    assert of.baselines("test", own)[0].keys() >= {"shared_mrr20", "shared_ndcg20"}
    assert alone.without_own({}, alone.counts()) == {}


def test_what_others_add_stays_when_the_own_part_is_taken_out() -> None:
    one, rest = (learner_of(configured(), DEMO.vocabulary, part) for part in (DEMO.units[:1], DEMO.units[1:]))
    left = one.without_own(add_pairs([one.counts(), rest.counts()]), one.counts())
    for name, values in rest.counts().items():
        np.testing.assert_allclose(left[name], values, rtol=1e-6)


def test_new_items_are_asked_about_alike_and_only_where_other_markets_know_them() -> None:
    one, rest = (learner_of(configured(), DEMO.vocabulary, part) for part in (DEMO.units[:1], DEMO.units[1:]))
    [market] = one.markets
    familiar = market.elsewhere(rest.counts()).degrees > 0
    assert 0 < familiar.sum() < len(familiar)
    queries, candidates = market._asked(market.graph.weights, familiar, None, np.random.default_rng(0))
    able = np.flatnonzero(familiar & (np.diff(market.graph.weights.indptr) > 0))
    counts = np.bincount(queries, minlength=len(familiar))
    assert set(np.flatnonzero(counts)) <= set(able)
    mean = len(queries) / len(able)
    assert np.abs(counts[able] - mean).max() < 6 * np.sqrt(mean), "each as often, whatever its degree"
    right = market.graph.weights[queries[:, None], candidates].toarray() > 0
    assert right[:, 0].all()
    assert not right[:, 1:].any()


def test_items_that_other_markets_know_are_told_apart_where_items_are_cold() -> None:
    one, rest = (
        learner_of(configured(protocol="cold", test_share=0.3), DEMO.vocabulary, part)
        for part in (DEMO.units[:1], DEMO.units[1:])
    )
    [market] = one.markets
    statics = rest.counts()
    metrics, weights = one.evaluate(parameters(one.module), statics, "test")
    assert set(metrics) == METRICS | {f"seen_{key}" for key in METRICS}
    asked = np.flatnonzero(np.diff(market.split.test.right.indptr))
    seen = asked[np.isin(market.graph.items[asked], np.flatnonzero(statics[DEGREES]))]
    assert (weights["mrr20"], weights["seen_mrr20"]) == (len(asked), len(seen))
    lines, _ = one.baselines("test", statics)
    assert {"degree_seen_mrr20", "shared_seen_ndcg20"} <= set(lines)
    assert set(one.evaluate(parameters(one.module), {}, "test")[0]) == METRICS, "nothing is shared"


def test_counts_hold_training_pairs_only() -> None:
    of = learner()
    [market, *_] = of.markets
    counts, V = market.counts, len(DEMO.vocabulary.items)
    items = market.graph.items
    held = {(int(items[a]), int(items[b])) for a, b in zip(*market.split.test.right.nonzero(), strict=True)}
    assert not held & {(int(key) // V, int(key) % V) for key in counts[KEYS]}
    total = add_pairs([market.counts for market in of.markets])
    assert all((total[name] == of.counts()[name]).all() for name in (KEYS, VALUES, DEGREES))


def test_bounded_counts_are_the_same_again() -> None:
    one, again = (learner(bound_users=True).counts() for _ in range(2))
    assert all((one[name] == again[name]).all() for name in one)
    assert one[VALUES].min() < 1


def test_with_little_noise_private_counts_are_the_bounded_ones() -> None:
    of, V = learner(count_epsilon=1.0), len(DEMO.vocabulary.items)
    noised = of.private_counts(1e-4, np.random.default_rng(0))
    check_pairs(noised, V)
    exact = add_pairs([bounded_counts(m.split.validation.ratings, V, np.random.default_rng(1)) for m in of.markets])
    assert abs(noised[VALUES].sum() / exact[VALUES].sum() - 1) < 0.02, "whose items count is drawn anew"


def test_lists_of_pairs_add_nothing_under_noise() -> None:
    listed = Markets((Market("uk", no_rows(), np.array([[0, 1], [0, 2]])),), DEMO.vocabulary)
    of = learner(part=listed, count_epsilon=1.0)
    assert not len(of.counts()[KEYS])
    assert not of.private_counts(1e-6, np.random.default_rng(0))[DEGREES].any()


def test_triples_are_of_neighbours_and_of_others_in_the_same_market() -> None:
    of = learner("paper")
    triples = of.triples(torch.Generator().manual_seed(0))
    pairs = {frozenset(pair) for pair in of.pairs.tolist()}
    sizes = [len(market.vectors) for market in of.markets]
    home = np.repeat(np.arange(len(sizes)), sizes)
    assert triples.shape == (64, 3)
    for anchor, neighbour, other in triples.tolist():
        assert frozenset((anchor, neighbour)) in pairs
        assert frozenset((anchor, other)) not in pairs
        assert anchor != other
        assert home[anchor] == home[neighbour] == home[other]
    assert of.examples == len(of.pairs) == len(pairs)


def test_all_neighbours_and_others_are_drawn_alike() -> None:
    path = Markets((Market("uk", no_rows(), np.array([[0, 1], [0, 2]])),), DEMO.vocabulary)
    of = learner("paper", path, batch=4000, test_share=0.01, fit_share=0.01)
    triples = of.triples(torch.Generator().manual_seed(1))
    rows, counts = np.unique(triples.numpy(), axis=0, return_counts=True)
    found = dict(zip(map(tuple, rows.tolist()), (counts / 4000).tolist(), strict=True))
    hub = {(0, 1, 1): 0.25, (0, 2, 2): 0.25}  # the hub knows everybody, so nothing is to be learnt of it
    assert found == pytest.approx({**hub, (1, 0, 2): 0.25, (2, 0, 1): 0.25}, abs=0.03)


def test_the_paper_s_loss_is_bpr_on_inner_products() -> None:
    of = learner("paper")
    batch, params = of.batch(request(of)), tensors(parameters(of.module))
    noise = {n: t[0] for n, t in of.step_inputs(1, torch.Generator().manual_seed(0)).items()}
    z = batch["propagated"].double() @ params["phi.mean"].double()
    a, b, c = z[noise["triples"]].unbind(1)
    by_hand = -torch.log(torch.sigmoid((a * b).sum(1) - (a * c).sum(1))).mean()
    assert float(of.loss(params, batch, noise)) == pytest.approx(float(by_hand), rel=1e-5)


@pytest.mark.parametrize("model", ["default", "paper"])
@pytest.mark.parametrize("options", [{}, {"bound_users": True}, {"count_epsilon": 8.0}])
def test_a_market_without_pairs_takes_part_with_nothing(model: str, options: dict[str, Scalar]) -> None:
    of = learner(model, Markets((Market("uk", no_rows(), no_rows()),), DEMO.vocabulary), **options)
    assert not len(of.counts()[KEYS])
    noise = {n: t[0] for n, t in of.step_inputs(1, torch.Generator()).items()}
    assert of.examples == 0
    assert of.evaluate(parameters(of.module), {}, "test") == ({}, {})
    loss = of.loss(tensors(parameters(of.module)), of.batch(request(of)), noise)
    assert torch.isfinite(loss)


def test_counts_that_came_too_late_are_not_taken_off_the_sums() -> None:
    alone, rest = (learner_of(configured(), DEMO.vocabulary, part) for part in (DEMO.units[:1], DEMO.units[1:]))
    sums = rest.counts()
    assert alone.without_own(sums, alone.counts()) is sums
    assert alone.without_own(sums, {}) is sums
    both = alone.without_own(add_pairs([alone.counts(), sums]), alone.counts())
    np.testing.assert_array_equal(both[KEYS], sums[KEYS])
