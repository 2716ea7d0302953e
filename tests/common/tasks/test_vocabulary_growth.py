"""Vocabularies of continued runs: names of both, with the indices of the first."""

import pytest

from common.errors import DataError
from common.tasks.markets.vocabulary import MarketCatalogue
from common.tasks.ratings.vocabulary import ProductCatalogue
from common.tasks.rules.vocabulary import RuleCatalogue
from common.tasks.sessions.vocabulary import Items
from common.tasks.traffic.vocabulary import SensorVariables


def test_new_names_come_after_the_old_ones_and_none_is_lost() -> None:
    grown = Items(items=("b", "a", "gone")).extended(Items(items=("c", "a", "0")))
    assert grown.items == ("b", "a", "gone", "c", "0")
    assert grown.extended(Items(items=("0", "b"))) == grown


def test_texts_follow_their_items() -> None:
    first = MarketCatalogue(items=("a", "b"), titles=("A", "B"))
    grown = first.extended(
        MarketCatalogue(items=("c", "a"), titles=("C", "other"), descriptions=("about c", "about a"))
    )
    assert grown.titles == ("A", "B", "C")
    assert grown.descriptions == ("", "", "about c")
    assert first.extended(MarketCatalogue(items=("c",))).titles == ("A", "B", "")


def test_scales_and_variables_have_to_agree() -> None:
    with pytest.raises(DataError, match=r"vocabularies of products differ in high: 5\.0 and 10\.0"):
        ProductCatalogue(items=("a",)).extended(ProductCatalogue(items=("b",), high=10))
    with pytest.raises(DataError, match="vocabularies of variables differ in variables"):
        SensorVariables(variables=("volume",)).extended(SensorVariables(variables=("volume", "speed")))


def rules(entities: tuple[str, ...], **abilities: dict[str, tuple[str, ...]]) -> RuleCatalogue:
    return RuleCatalogue(entities=entities, relations=("opens → turn on",), **abilities)


def test_abilities_are_those_of_both_unless_some_are_unknown() -> None:
    lamp, door = {"lamp": ("turn on",)}, {"door": ("turn on",), "lamp": ("turn off",)}
    assert rules(("lamp",), does=lamp).extended(rules(("door", "lamp"), does=door)).does == {
        "lamp": ("turn on", "turn off"),
        "door": ("turn on",),
    }
    assert rules(("lamp",), does=lamp).extended(rules(("lamp",))).does == lamp
    assert rules(("lamp",), does=lamp).extended(rules(("door",))).does == {}
    assert rules(("lamp",)).extended(rules(("door",), does={"door": ("turn on",)})).does == {}
