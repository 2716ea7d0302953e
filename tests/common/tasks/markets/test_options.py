"""Vocabulary of the markets task."""

import pytest

from common.errors import DataError
from common.tasks.markets.vocabulary import MarketCatalogue, demo_market_catalogue, set_size


def test_text_is_title_and_description() -> None:
    goods = MarketCatalogue(items=("a", "b", "c"), titles=("Lamp", "", " "), descriptions=("warm light", "", ""))
    assert [goods.text(k) for k in range(3)] == ["Lamp warm light", "", ""]
    assert MarketCatalogue(items=("a",)).text(0) == ""


@pytest.mark.parametrize(
    "text", ['{"items": ["a", "a"]}', '{"items": [""]}', '{"items": ["a"], "titles": ["x", "y"]}', '{"entities": []}']
)
def test_an_invalid_vocabulary_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="not a vocabulary of items"):
        MarketCatalogue.from_json(text)


def test_a_demo_set_shares_its_kind_and_shelf() -> None:
    goods = demo_market_catalogue()
    kinds = [title.split()[0] for title in goods.titles]
    assert set(kinds[: set_size()]) == {"Steel"}
    assert kinds[set_size()] != "Steel"
