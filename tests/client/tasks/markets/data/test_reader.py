"""Every form of market data, and what is wrong with some."""

import json
from pathlib import Path

import numpy as np
import pytest

from client.data.read import find_own_tables, read_all
from client.tasks.markets.data.markets import Market, Markets
from client.tasks.markets.data.reader import read_markets
from client.tasks.markets.task import TASK
from common.errors import DataError, VocabularyError
from common.tasks.markets.vocabulary import MarketCatalogue
from tests.support.files import Writer


def pairs(market: Market, goods: MarketCatalogue) -> list[tuple[str, str]]:
    return [(goods.items[a], goods.items[b]) for a, b in market.pairs.tolist()]


def test_pairs_are_undirected_and_count_once(text: Writer) -> None:
    found = read_markets(text("item_a,item_b", "b,a", "a,b", "c,a", "c,c"))
    [market] = found.units
    assert (market.name, market.listed) == ("uk", True)
    assert found.vocabulary.items == ("a", "b", "c")
    assert pairs(market, found.vocabulary) == [("a", "b"), ("a", "c")]
    assert found.notes == (
        "1 pair of market uk of an item with itself skipped",
        "1 pair of market uk named more than once (either way round) count once",
    )


def test_ratings_keep_who_rated_what(text: Writer) -> None:
    found = read_markets(text("user;item;rating", "ann;x;5", "bob;x;1", "ann;y;", "ann;x;2", name="de.csv.gz"))
    [market] = found.units
    assert (market.name, market.listed) == ("de", False)
    np.testing.assert_array_equal(market.ratings, [[0, 0], [0, 1], [1, 0]])
    assert "1 rating of market de of an item by the same user count once" in found.notes[0]
    assert "an edge is a pair rated by the same users" in found.notes[1]


def test_names_in_a_text_file_may_stand_further_apart(text: Writer) -> None:
    """As in lists that people line up by hand."""
    dataset = read_markets(text("item_a   item_b", "cup  saucer", "cup spoon", name="north.txt"))
    assert pairs(dataset.units[0], dataset.vocabulary) == [("cup", "saucer"), ("cup", "spoon")]


def test_a_folder_is_a_market_a_table_and_a_catalogue(text: Writer, tmp_path: Path) -> None:
    text("item,title,description", 'x,"Lamp, small","warm', 'light"', "y,,", "z,Cup,", name="catalogue.csv")
    text("item_a,item_b", "x,y", "x,q")
    text("user,item", "1,y", "1,z", name="de.csv")
    found = read_markets(tmp_path)
    assert found.vocabulary == MarketCatalogue(
        items=("x", "y", "z"), titles=("Lamp, small", "", "Cup"), descriptions=("warm\nlight", "", "")
    )
    assert [market.name for market in found.units] == ["de", "uk"]
    assert "1 row of market uk skipped: the catalogue lacks an item" in found.notes
    assert find_own_tables("markets", str(tmp_path)) == []  # one data set, not clients' own tables


def test_markets_without_overlap_are_told(text: Writer, tmp_path: Path) -> None:
    text("item_a,item_b", "x,y")
    text("item_a,item_b", "p,q", name="de.csv")
    assert read_markets(tmp_path).notes == (
        "market de sells nothing that another market here sells",
        "market uk sells nothing that another market here sells",
    )


def test_known_goods_win_over_the_folder_s_own(text: Writer, tmp_path: Path) -> None:
    text("item", "x", "y", name="catalogue.csv")
    text("item_a,item_b", "x,y")
    goods = MarketCatalogue(items=("y", "x"))
    assert read_markets(tmp_path, goods).vocabulary == goods


def test_xmarket_s_raw_ratings_have_no_header(text: Writer, tmp_path: Path) -> None:
    text("AE5 0061806765 3 2012-08-20", "AE5 0142410586 4 2020-04-13", name="ratings_uk_Books.txt.gz")
    text("userId itemId rate date", "AF1 0061806765 5 2012-08-20", name="de_10core.txt")
    assert [market.name for market in read_markets(tmp_path).units] == ["de"]  # the cleaned ones win
    (tmp_path / "de_10core.txt").unlink()
    found = read_markets(tmp_path)
    assert found.vocabulary.items == ("0061806765", "0142410586")
    np.testing.assert_array_equal(found.units[0].ratings, [[0, 0], [0, 1]])


def test_metadata_bring_texts_and_lists_that_ratings_yield_to(text: Writer, tmp_path: Path) -> None:
    one = {"asin": "A", "title": "Radio", "description": ["Short", "wave"], "related": {"alsoBought": ["B", "Q"]}}
    two = {"asin": "B", "title": None, "related": {"alsoViewed": ["A", "C"], "sponsored": ["A"]}}
    text(json.dumps(one), repr(two), json.dumps({"asin": "C", "title": "Aerial"}), name="metadata_us_Radio.json.gz")
    text("u A 5 2020-01-01", "u C 5 2020-01-01", name="ratings_us_Radio.txt")
    found = read_markets(tmp_path)
    assert found.vocabulary == MarketCatalogue(
        items=("A", "B", "C"), titles=("Radio", "", "Aerial"), descriptions=("Short wave", "", "")
    )
    assert pairs(found.units[0], found.vocabulary) == [("A", "B"), ("B", "C")]
    assert "market us: ratings are not used, since there are lists of items that go together" in found.notes


def test_a_table_may_name_several_markets(text: Writer) -> None:
    found = read_markets(text("market,user,item", "uk,1,x", "de,1,y", "fr,,"))
    assert [(market.name, len(market.ratings)) for market in found.units] == [("de", 1), ("fr", 0), ("uk", 1)]


def test_the_demo_is_the_same_in_parts() -> None:
    whole = read_all("markets", "demo", seed=3)
    alone = read_all("markets", "demo:4-6", seed=3)
    assert len(whole.units) == TASK.demo_units
    for ours, theirs in zip(alone.units, whole.units[4:], strict=True):
        np.testing.assert_array_equal(ours.ratings, theirs.ratings)


def test_the_demo_s_markets_differ_in_size_and_overlap() -> None:
    markets = read_all("markets", "demo").units
    sizes = [len(market.ratings) for market in markets]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 20 * sizes[-1]
    sold = [set(market.ratings[:, 1].tolist()) for market in markets]
    assert 0.5 < len(sold[-1] & sold[1]) / len(sold[-1]) < 1


def test_the_demo_speaks_its_own_goods_only() -> None:
    with pytest.raises(VocabularyError, match="embedded data do not fit"):
        read_all("markets", "demo", vocabulary=MarketCatalogue(items=("x",)))
    with pytest.raises(DataError, match="invalid demo range 'demo:2-2'; write demo, or demo:START-STOP"):
        read_all("markets", "demo:2-2")


def test_xmarket_holds_what_its_source_says(xmarket: Markets) -> None:
    counted = {
        "ca": (44779, 4668, 5735),
        "de": (17300, 1851, 2179),
        "fr": (17624, 1838, 1879),
        "in": (2015, 239, 470),
        "jp": (4485, 487, 955),
        "mx": (17095, 1878, 1645),
        "uk": (31547, 3352, 3251),
    }
    assert len(xmarket.vocabulary.items) == 8304
    for market in xmarket.units:
        said = f" of market {market.name} of an item by"
        [repeated] = [int(note.split()[0].replace(",", "")) for note in xmarket.notes if said in note]
        users, items = (len(np.unique(column)) for column in market.ratings.T)
        assert (len(market.ratings) + repeated, users, items) == counted[market.name]
