"""Markets that are refused, and what is said of them."""

from pathlib import Path

import pytest

from client.tasks.markets.data.reader import read_markets
from common.errors import DataError
from common.tasks.markets.vocabulary import MarketCatalogue
from tests.support.files import Writer


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["item,price", "x,3"], "no column 'user'; the table needs user and item, or item_a and item_b"),
        (["item_a,item_b", "x,y", "x,"], "line 3, column 'item_b': empty"),
        (["user,item", ",y"], "line 2, column 'user': empty"),
        (["user,item,rating", "a,y,good"], "line 2, column 'rating': 'good' is not a number"),
        (["user,item", "a,y,3"], "line 2: 3 cells, but the first line has 2"),
        (["user,item"], "a header but no rows"),
        ([""], "the file is empty"),
    ],
)
def test_a_malformed_table_is_told_by_line_and_column(text: Writer, lines: list[str], said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_markets(text(*lines))


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["item,title", "x,a", "y,b", "x,c"], "line 4, column 'item': 'x' is listed twice, first in line 2"),
        (["title", "a"], "no column 'item'"),
        (["item,title", ",a"], "line 2, column 'item': empty"),
    ],
)
def test_a_malformed_catalogue_is_told(text: Writer, tmp_path: Path, lines: list[str], said: str) -> None:
    text(*lines, name="catalogue.csv")
    text("item_a,item_b", "x,y")
    with pytest.raises(DataError, match=said):
        read_markets(tmp_path)


@pytest.mark.parametrize("name", ["catalogue.csv", "uk.csv"])
def test_text_that_is_not_utf_8_is_told_by_its_line(text: Writer, tmp_path: Path, name: str) -> None:
    text("item,title", "x,Lamp", name="catalogue.csv")
    text("item_a,item_b", "x,x")
    (tmp_path / name).write_bytes("item,title\nx,Café\n".encode("latin-1"))
    with pytest.raises(DataError, match=f"{name}, line 2: not text in UTF-8"):
        read_markets(tmp_path)


@pytest.mark.parametrize("line", ['{"title": "x"}', "[1, 2]", "import os", '{"asin": '])
def test_a_line_of_metadata_that_is_no_product_is_told(text: Writer, tmp_path: Path, line: str) -> None:
    text('{"asin": "A"}', line, name="metadata_us_Radio.json")
    with pytest.raises(DataError, match="line 2"):
        read_markets(tmp_path)


def test_a_market_of_another_catalogue_is_refused(text: Writer) -> None:
    with pytest.raises(DataError, match="none of its 2 rows"):
        read_markets(text("item_a,item_b", "x,y", "y,z"), MarketCatalogue(items=("p", "q")))


def test_an_empty_folder_and_none_at_all_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no market"):
        read_markets(tmp_path)
    with pytest.raises(DataError, match="no such file"):
        read_markets(tmp_path / "uk.csv")
