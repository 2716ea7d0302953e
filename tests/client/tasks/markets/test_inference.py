"""Related items by a trained model: by hand on a small market, also for an item that is new there."""

import numpy as np
import pytest

from client.tasks.lists import ItemFilter
from client.tasks.markets.data.graph import graph_counts, graph_of
from client.tasks.markets.data.markets import Market, as_ratings, no_rows
from client.tasks.markets.inference import companions, item_named, labelled, seen_companions
from common.arrays import Arrays
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import DataError, StateError
from common.models import parameters
from common.options import Scalar
from common.tasks.markets.pairs import COLD_FEATURES, FEATURES, add_pairs, counts_of
from common.tasks.markets.vocabulary import MarketCatalogue
from tests.support.build import learner_of, task_model

CATALOGUE = MarketCatalogue(
    items=("cup", "pot", "tea", "jam", "bun", "pan", "lid"), titles=("Cup", "Pot", "Tea", "Jam", "Bun", "", "Pot")
)
BASKETS = [{0, 1}, {0, 1}, {1, 2}, {1, 2}, {2, 3}, {2, 3}, {1, 2}]
"""A chain cup, pot, tea, jam; bun, pan and lid are not sold here."""
SHOP = Market("uk", as_ratings(np.array([(u, i) for u, b in enumerate(BASKETS) for i in sorted(b)])), no_rows())


def build_config(model: str = "default", method: str = "fedavg", **options: Scalar) -> RunConfig:
    flat: dict[str, Scalar] = {f"tasks.markets.{key}": value for key, value in {"width": 16, **options}.items()}
    return parse({"method": method, "task": "markets", "model": model, **flat})


def weights(**values: float) -> Arrays:
    return {"scorer.weight": np.array([[values.get(name, 0.0) for name in FEATURES]], np.float32)}


def other_counts(*pairs: tuple[int, int], users: int = 5) -> Arrays:
    ordered = np.array(sorted(pairs), np.int64)
    degrees = np.bincount(ordered.ravel(), minlength=len(CATALOGUE.items))
    return counts_of(ordered, np.full(len(pairs), users), degrees, len(CATALOGUE.items))


def test_best_first_without_the_item_and_its_neighbors() -> None:
    ranked = companions(build_config(), CATALOGUE, weights(walk=1.0), SHOP, 0, top=5)
    assert [c.item for c in ranked] == ["tea", "jam"]
    walk = 2 * 3 / (2 + 3)  # cup-pot by 2 users, pot-tea by 3; pot's strength is 5
    kappa = 1 / (1 + 4 * 4)  # none of three pairs has a common neighbor; smoothing gives 1/5
    assert ranked[0].score == pytest.approx(kappa * np.log1p(100 * walk), rel=1e-5)
    assert ranked[1].score == 0
    assert (ranked[0].item, ranked[0].title) == ("tea", "Tea")
    assert len(companions(build_config(), CATALOGUE, weights(walk=1.0), SHOP, 0, top=1)) == 1


def test_neighbors_may_be_kept_and_reasons_name_the_own_market_first() -> None:
    kept = companions(build_config(), CATALOGUE, weights(walk=1.0), SHOP, 0, 5, ItemFilter.seen(hide=False))
    reasons = {c.item: c.why for c in kept}
    assert reasons["pot"] == "goes with it in your market already"
    assert reasons["tea"] == "both go with 'Pot'"
    assert reasons["jam"] == "learnt by the federation"
    assert seen_companions(build_config(), SHOP, 0).tolist() == [1]
    assert seen_companions(build_config(), SHOP, 6).tolist() == []


def test_a_reason_states_only_plaintext_counts_of_other_markets() -> None:
    sums = other_counts((3, 4), users=26)
    for bounded, expected in (
        (False, "about 30 records of other markets pair them"),
        (True, "learnt by the federation"),
    ):
        config = build_config(**{"bound-users": bounded})
        [best] = companions(config, CATALOGUE, {**weights(new_elsewhere=1.0), **sums}, SHOP, 4, top=1)
        assert (best.item, best.why) == ("jam", expected)


def test_a_new_item_is_ranked_by_its_pairs_in_other_markets() -> None:
    sums = other_counts((3, 4), (1, 6))
    ranked = companions(build_config(), CATALOGUE, {**weights(new_elsewhere=1.0), **sums}, SHOP, 4, top=4)
    assert ranked[0].item == "jam"
    assert ranked[0].score == pytest.approx(np.log1p(5))
    assert [c.score for c in ranked[1:]] == [0, 0, 0]
    popular = companions(build_config(), CATALOGUE, weights(new_degree=1.0), SHOP, 4, top=2)
    assert {c.item for c in popular} == {"pot", "tea"}


def test_the_own_counts_of_a_market_are_subtracted() -> None:
    counts = graph_counts(graph_of(SHOP, 2), len(CATALOGUE.items))
    both = add_pairs([counts, other_counts((0, 3))])
    ranked = companions(
        build_config(), CATALOGUE, {**weights(elsewhere=1.0, new_elsewhere=1.0), **both}, SHOP, 0, top=2
    )
    assert [(c.item, c.score) for c in ranked] == [("jam", pytest.approx(np.log1p(5))), ("tea", 0.0)]


def test_a_market_without_pairs_uses_the_pairs_of_other_markets() -> None:
    alone = Market("br", np.array([[0, 0], [1, 3], [2, 4], [3, 5]]), no_rows())
    sums = other_counts((0, 2), (0, 3), (0, 4), (0, 4))
    ranked = companions(build_config(), CATALOGUE, {**weights(new_elsewhere=1.0), **add_pairs([sums])}, alone, 0, top=9)
    assert [c.item for c in ranked] == ["bun", "jam", "pan"], "tea is not sold here"
    assert [c.score for c in ranked] == pytest.approx([np.log1p(10), np.log1p(5), 0])
    walks = weights(**dict.fromkeys(COLD_FEATURES, 1.0))
    ranked = companions(build_config(), CATALOGUE, {**walks, **add_pairs([sums])}, alone, 0, top=1)
    assert [c.item for c in ranked] == ["bun"]


def test_an_item_without_pairs_is_a_candidate_too() -> None:
    more = Market("uk", np.concatenate([SHOP.ratings, [[7, 5]]]), no_rows())
    ranked = companions(
        build_config(), CATALOGUE, {**weights(elsewhere=1.0, new_elsewhere=1.0), **other_counts((1, 5))}, more, 1, top=9
    )
    assert [(c.item, c.score) for c in ranked] == [("pan", pytest.approx(np.log1p(5))), ("jam", 0.0)]


def test_a_model_of_other_features_is_refused() -> None:
    earlier = {"scorer.weight": np.zeros((1, 14), np.float32)}
    with pytest.raises(StateError, match="weights of 14 features instead of 17; train it again"):
        companions(build_config(), CATALOGUE, earlier, SHOP, 0, top=3)


@pytest.mark.parametrize("listed", [True, False])
def test_the_papers_networks_score_items_without_pairs(listed: bool) -> None:
    config = build_config("paper", embedding=8)
    pairs = np.array([[3, 6]]) if listed else no_rows()
    market = Market("br", np.array([[0, 0], [1, 3], [2, 4]]), pairs)
    ranked = companions(config, CATALOGUE, parameters(task_model(config, CATALOGUE)), market, 0, top=9)
    assert {c.item for c in ranked} == {"jam", "bun", *(["lid"] if listed else [])}


def test_a_negative_theta_does_not_reverse_the_ranking() -> None:
    config = build_config("paper", "pfgnn", embedding=8, features="ids")
    model = parameters(task_model(config, CATALOGUE))
    near, far = (
        companions(config, CATALOGUE, {**model, "theta": np.array([sign, 0], np.float32)}, SHOP, 4, top=9)
        for sign in (1, -1)
    )
    assert [(c.item, c.score) for c in far] == [(c.item, c.score) for c in near]
    of = learner_of(config, CATALOGUE, [SHOP])
    z = {sign: of.scores({**model, "theta": np.array([sign, 0], np.float32)}, {}, 0) for sign in (1, -1)}
    np.testing.assert_array_equal(z[-1](np.arange(4)), z[1](np.arange(4)))


def test_the_papers_networks_rank_by_inner_products() -> None:
    config = build_config("paper", embedding=8)
    model = parameters(task_model(config, CATALOGUE))
    ranked = companions(config, CATALOGUE, model, SHOP, 4, top=9)
    assert {c.item for c in ranked} == {"cup", "pot", "tea", "jam"}
    assert [c.score for c in ranked] == sorted((c.score for c in ranked), reverse=True)


def test_items_are_named_by_id_or_title() -> None:
    assert item_named("tea", CATALOGUE) == item_named("TEA", CATALOGUE) == 2
    assert item_named("pot", CATALOGUE) == 1, "an id comes before titles"
    assert (labelled(CATALOGUE, 2), labelled(CATALOGUE, 5)) == ("tea Tea", "pan")
    with pytest.raises(DataError, match="did you mean 'jam'"):
        item_named("jams", CATALOGUE)
    with pytest.raises(DataError, match="2 items have the title 'POT'"):
        item_named("POT", CATALOGUE)
    with pytest.raises(DataError, match=r"has no item 'xyzzy'$"):
        item_named("xyzzy", CATALOGUE)
