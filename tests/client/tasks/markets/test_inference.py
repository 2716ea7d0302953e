"""From a finished model to items that go with one: by hand on a small market, and of an item that is new there."""

import numpy as np
import pytest

from client.tasks.markets.data.counts import graph_counts
from client.tasks.markets.data.graph import graph_of
from client.tasks.markets.data.markets import Market, as_ratings, no_rows
from client.tasks.markets.inference import companions, item_named, labelled
from common.arrays import Arrays
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import DataError
from common.models import parameters
from common.options import Scalar
from common.tasks.markets.counts import add_pairs, counts_of
from common.tasks.markets.models.pair_scorer import FEATURES, NEW
from common.tasks.markets.vocabulary import MarketCatalogue
from tests.support.build import learner_of, task_model

GOODS = MarketCatalogue(
    items=("cup", "pot", "tea", "jam", "bun", "pan", "lid"), titles=("Cup", "Pot", "Tea", "Jam", "Bun", "", "Pot")
)
BASKETS = [{0, 1}, {0, 1}, {1, 2}, {1, 2}, {2, 3}, {2, 3}, {1, 2}]
"""A chain cup, pot, tea, jam; bun, pan and lid are not sold here."""
SHOP = Market("uk", as_ratings(np.array([(u, i) for u, b in enumerate(BASKETS) for i in sorted(b)])), no_rows())


def configured(model: str = "default", method: str = "fedavg", **options: Scalar) -> RunConfig:
    flat: dict[str, Scalar] = {f"tasks.markets.{key}": value for key, value in {"width": 16, **options}.items()}
    return parse({"method": method, "task": "markets", "model": model, **flat})


def weights(**given: float) -> Arrays:
    return {"scorer.weight": np.array([[given.get(name, 0.0) for name in FEATURES]], np.float32)}


def elsewhere(*pairs: tuple[int, int], users: int = 5) -> Arrays:
    ordered = np.array(sorted(pairs), np.int64)
    degrees = np.bincount(ordered.ravel(), minlength=len(GOODS.items))
    return counts_of(ordered, np.full(len(pairs), users), degrees, len(GOODS.items))


def test_best_first_without_the_item_and_what_goes_with_it_already() -> None:
    found = companions(configured(), GOODS, weights(walk=1.0), SHOP, 0, top=5)
    assert [c.item for c in found] == ["tea", "jam"]
    walk = 2 * 3 / (2 + 3)  # cup-pot by 2 users, pot-tea by 3; pot's strength is 5
    kappa = 1 / (1 + 4 * 4)  # none of three pairs has a neighbour in common; one of each kind more makes a fifth
    assert found[0].score == pytest.approx(kappa * np.log1p(100 * walk), rel=1e-5)
    assert found[1].score == 0
    assert (found[0].item, found[0].title) == ("tea", "Tea")
    assert len(companions(configured(), GOODS, weights(walk=1.0), SHOP, 0, top=1)) == 1


def test_an_item_that_is_new_here_goes_with_what_it_goes_with_elsewhere() -> None:
    sums = elsewhere((3, 4), (1, 6))
    found = companions(configured(), GOODS, {**weights(new_elsewhere=1.0), **sums}, SHOP, 4, top=4)
    assert found[0].item == "jam"
    assert found[0].score == pytest.approx(np.log1p(5))
    assert [c.score for c in found[1:]] == [0, 0, 0]
    popular = companions(configured(), GOODS, weights(new_degree=1.0), SHOP, 4, top=2)
    assert {c.item for c in popular} == {"pot", "tea"}


def test_a_market_s_own_part_of_the_sums_is_no_evidence() -> None:
    own = graph_counts(graph_of(SHOP, 2), len(GOODS.items))
    both = add_pairs([own, elsewhere((0, 3))])
    found = companions(configured(), GOODS, {**weights(elsewhere=1.0, new_elsewhere=1.0), **both}, SHOP, 0, top=2)
    assert [(c.item, c.score) for c in found] == [("jam", pytest.approx(np.log1p(5))), ("tea", 0.0)]


def test_a_market_whose_customers_share_no_pair_gets_what_others_sell_together() -> None:
    alone = Market("br", np.array([[0, 0], [1, 3], [2, 4], [3, 5]]), no_rows())
    sums = elsewhere((0, 2), (0, 3), (0, 4), (0, 4))
    found = companions(configured(), GOODS, {**weights(new_elsewhere=1.0), **add_pairs([sums])}, alone, 0, top=9)
    assert [c.item for c in found] == ["bun", "jam", "pan"], "tea is not sold here"
    assert [c.score for c in found] == pytest.approx([np.log1p(10), np.log1p(5), 0])
    walks = weights(**dict.fromkeys(NEW, 1.0))
    told = companions(configured(), GOODS, {**walks, **add_pairs([sums])}, alone, 0, top=1)
    assert [c.item for c in told] == ["bun"]


def test_an_item_that_nobody_bought_with_another_is_a_candidate_beside_those_with_pairs() -> None:
    more = Market("uk", np.concatenate([SHOP.ratings, [[7, 5]]]), no_rows())
    found = companions(
        configured(), GOODS, {**weights(elsewhere=1.0, new_elsewhere=1.0), **elsewhere((1, 5))}, more, 1, top=9
    )
    assert [(c.item, c.score) for c in found] == [("pan", pytest.approx(np.log1p(5))), ("jam", 0.0)]


@pytest.mark.parametrize("listed", [True, False])
def test_the_papers_networks_score_what_a_market_names_without_a_pair(listed: bool) -> None:
    config = configured("paper", embedding=8)
    pairs = np.array([[3, 6]]) if listed else no_rows()
    market = Market("br", np.array([[0, 0], [1, 3], [2, 4]]), pairs)
    found = companions(config, GOODS, parameters(task_model(config, GOODS)), market, 0, top=9)
    assert {c.item for c in found} == {"jam", "bun", *(["lid"] if listed else [])}


def test_where_the_decoder_learnt_that_far_is_alike_the_farthest_come_first() -> None:
    config = configured("paper", "pfgnn", embedding=8, features="ids")
    model = parameters(task_model(config, GOODS))
    near, far = (
        companions(config, GOODS, {**model, "theta": np.array([sign, 0], np.float32)}, SHOP, 4, top=9)
        for sign in (1, -1)
    )
    assert [c.item for c in far] == [c.item for c in near][::-1]
    assert [c.score for c in far] == [-c.score for c in near][::-1]
    of = learner_of(config, GOODS, [SHOP])
    z = {sign: of.scores({**model, "theta": np.array([sign, 0], np.float32)}, {}, 0) for sign in (1, -1)}
    np.testing.assert_array_equal(z[-1](np.arange(4)), -z[1](np.arange(4)))


def test_the_papers_networks_rank_by_inner_products() -> None:
    config = configured("paper", embedding=8)
    model = parameters(task_model(config, GOODS))
    found = companions(config, GOODS, model, SHOP, 4, top=9)
    assert {c.item for c in found} == {"cup", "pot", "tea", "jam"}
    assert [c.score for c in found] == sorted((c.score for c in found), reverse=True)


def test_items_are_named_by_id_or_title() -> None:
    assert item_named("tea", GOODS) == item_named("TEA", GOODS) == 2
    assert item_named("pot", GOODS) == 1, "an id comes before titles"
    assert (labelled(GOODS, 2), labelled(GOODS, 5)) == ("tea Tea", "pan")
    with pytest.raises(DataError, match="did you mean 'jam'"):
        item_named("jams", GOODS)
    with pytest.raises(DataError, match="2 items have the title 'POT'"):
        item_named("POT", GOODS)
    with pytest.raises(DataError, match=r"has no item 'xyzzy'$"):
        item_named("xyzzy", GOODS)
