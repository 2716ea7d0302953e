"""What is held out is not known, either way round; and depends on nothing but seed and name."""

from dataclasses import replace

import numpy as np
import pytest

from client.tasks.markets.data.graph import SplitMarket, split_market
from client.tasks.markets.data.markets import Market, as_pairs, as_ratings, no_rows
from common.errors import DataError
from common.tasks.markets.options import MarketsOptions

RNG = np.random.default_rng(0)
RATED = Market("uk", as_ratings(np.stack([RNG.integers(0, 60, 500), RNG.integers(0, 30, 500)], axis=1)), no_rows())
LISTED = Market("de", no_rows(), as_pairs(RNG.integers(0, 40, (200, 2))))


def split(market: Market = RATED, seed: int = 0, **options: object) -> SplitMarket:
    return split_market(market, MarketsOptions.model_validate(options), seed)


def edges(matrix: object) -> set[tuple[int, int]]:
    return set(zip(*(ends.tolist() for ends in matrix.nonzero()), strict=True))  # type: ignore[attr-defined]


@pytest.mark.parametrize("protocol", ["pairs", "users", "cold"])
def test_no_answer_is_known_either_way_round(protocol: str) -> None:
    parts = split(protocol=protocol, validation_share=0.2)
    for held in (parts.test, parts.validation, parts.fit):
        known, asked = edges(held.graph.weights), edges(held.right)
        assert asked
        assert not known & asked
        assert not known & {(b, a) for a, b in asked}


@pytest.mark.parametrize("market", [RATED, LISTED])
def test_pairs_are_dealt_to_the_parts_whole(market: Market) -> None:
    parts = split(market, validation_share=0.2, co_rating=1)
    whole = edges(parts.fit.graph.weights)
    for held in (parts.fit, parts.validation, parts.test):
        assert edges(held.right) == {(b, a) for a, b in edges(held.right)}
        assert not whole & edges(held.right)
        whole |= edges(held.right)
        assert whole == edges(held.graph.weights) | edges(held.right)
    total = len(whole) // 2
    assert len(edges(parts.test.right)) // 2 == int(0.1 * total)


def test_cold_items_lose_all_their_edges_and_alone_are_asked() -> None:
    parts = split(protocol="cold", test_share=0.2, co_rating=1)
    asked = {a for a, _ in edges(parts.test.right)}
    assert len(asked) == int(0.2 * len(parts.graph.items))
    assert not any(a in asked or b in asked for a, b in edges(parts.graph.weights))
    assert {a for a, _ in edges(parts.fit.right)} & {b for _, b in edges(parts.fit.right)}  # these are pairs


def test_held_out_users_ask_for_pairs_that_nobody_else_has() -> None:
    parts = split(protocol="users")
    left = parts.validation.ratings
    gone = {tuple(row) for row in RATED.ratings.tolist()} - {tuple(row) for row in left.tolist()}
    users = {user for user, _ in gone}
    assert len(users) == int(0.1 * 60)
    assert not users & set(left[:, 0].tolist())
    baskets = [{item for who, item in gone if who == user} for user in users]
    for a, b in edges(parts.test.right):
        items = {int(parts.graph.items[a]), int(parts.graph.items[b])}
        assert any(items <= basket for basket in baskets)


def test_the_test_part_depends_on_seed_and_name_alone() -> None:
    asked = edges(split().test.right)
    assert asked == edges(split(validation_share=0.3, fit_share=0.4).test.right)
    assert asked != edges(split(seed=1).test.right)
    assert asked != edges(split(replace(RATED, name="fr")).test.right)


def test_lists_name_no_users_to_hold_out() -> None:
    with pytest.raises(DataError, match="name no users"):
        split(LISTED, protocol="users")


def test_a_market_without_pairs_is_split_into_nothing() -> None:
    parts = split(Market("jp", as_ratings(np.array([[0, 1], [1, 2]])), no_rows()))
    assert len(parts.graph.items) == len(edges(parts.test.right)) == 0
