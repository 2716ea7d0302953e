"""Markets learner: counts for the sums over markets, with and without bounds and noise."""

import numpy as np

from client.tasks.markets.data.graph import bounded_counts
from client.tasks.markets.data.markets import Market, Markets, no_rows
from common.tasks.markets.counts import DEGREES, FEATURES, KEYS, VALUES, add_pairs, check_pairs, no_counts
from tests.support.build import learner_of
from tests.support.market_learners import DEMO, build_config, learner, one_and_rest

NOTHING = no_counts(len(DEMO.vocabulary.items))


def test_the_own_counts_are_no_feature_of_a_market() -> None:
    of = learner(count_offset=True)
    counts = of.counts()
    check_pairs(counts, len(DEMO.vocabulary.items))
    alone = learner_of(build_config(), DEMO.vocabulary, DEMO.units[:1])
    [market] = alone.markets
    statics = alone.without_own(add_pairs([alone.counts(), NOTHING]), alone.counts())
    for name, x in zip(FEATURES, market.baseline(market.graph, statics).features(np.arange(5)), strict=True):
        if "elsewhere" in name or name == "new_detour":
            assert not x.any()
    assert of.baselines("test", counts)[0].keys() >= {"shared_mrr20", "shared_ndcg20"}
    assert alone.without_own({}, alone.counts()) == {}


def test_the_counts_of_other_markets_stay_when_the_own_are_subtracted() -> None:
    here, elsewhere = one_and_rest()
    left = here.without_own(add_pairs([here.counts(), elsewhere.counts()]), here.counts())
    for name, values in elsewhere.counts().items():
        np.testing.assert_allclose(left[name], values, rtol=1e-6)


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
    first, again = (learner(bound_users=True).counts() for _ in range(2))
    assert all((first[name] == again[name]).all() for name in first)
    assert first[VALUES].min() < 1


def test_with_little_noise_private_counts_are_the_bounded_ones() -> None:
    of, V = learner(count_epsilon=1.0), len(DEMO.vocabulary.items)
    noised = of.private_counts(1e-4, np.random.default_rng(0))
    check_pairs(noised, V)
    exact = add_pairs([bounded_counts(m.split.validation.ratings, V, np.random.default_rng(1)) for m in of.markets])
    assert abs(noised[VALUES].sum() / exact[VALUES].sum() - 1) < 0.02, "the items that count are drawn at random"


def test_lists_of_pairs_add_nothing_under_noise() -> None:
    listed = Markets((Market("uk", no_rows(), np.array([[0, 1], [0, 2]])),), DEMO.vocabulary)
    of = learner(part=listed, count_epsilon=1.0)
    assert not len(of.counts()[KEYS])
    assert not of.private_counts(1e-6, np.random.default_rng(0))[DEGREES].any()


def test_counts_of_a_late_reply_are_not_subtracted_from_the_sums() -> None:
    alone, rest = one_and_rest()
    sums = rest.counts()
    assert alone.without_own(sums, alone.counts()) is sums
    assert alone.without_own(sums, {}) is sums
    both = alone.without_own(add_pairs([alone.counts(), sums]), alone.counts())
    np.testing.assert_array_equal(both[KEYS], sums[KEYS])
