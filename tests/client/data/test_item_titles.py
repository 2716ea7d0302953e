"""Titles of items from RecBole's files beside the data."""

from pathlib import Path

import pytest

from client.data.read import read_titles
from client.tasks.lists import label_of, title_of
from common.errors import DataError

HEADER = "item_id:token\tmovie_title:token_seq\trelease_year:float\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with ratings of two data sets, of which one has titles."""
    (tmp_path / "ml.item").write_text(f"{HEADER}242\tHigh Noon\t1952\n302\t\t1990\n")
    for name in ("ml.inter", "ml.train.inter", "shop.inter"):
        (tmp_path / name).write_text("user_id:token\titem_id:token\trating:float\n1\t242\t3\n")
    return tmp_path


@pytest.mark.parametrize("data", ["", "ml.inter", "ml.train.inter", "ml.train.inter::ml.test.inter"])
def test_a_folder_and_its_files_of_that_name_have_titles(folder: Path, data: str) -> None:
    titles = read_titles(f"{folder}/{data}".rstrip("/"))
    assert titles == {"242": "High Noon"}
    assert [title_of(item, titles) for item in ("242", "302")] == ["High Noon", "302"]
    assert [label_of(item, titles) for item in ("242", "302")] == ["242 High Noon", "302"]


def test_other_sources_have_none(folder: Path) -> None:
    (folder / "u.item").write_bytes("242|Kolya (1996)|Köln".encode("latin-1"))
    sources = ("demo:0-6", f"{folder}/shop.inter", f"{folder}/u.data", f"{folder}/absent")
    assert [dict(read_titles(source)) for source in sources] == [{}] * 4
    assert read_titles(str(folder)) == {"242": "High Noon"}, "MovieLens has another file of that suffix"


def test_items_without_a_column_of_titles_are_named_by_id(folder: Path) -> None:
    (folder / "ml.item").write_text("item_id:token\tprice:float\n242\t3\n")
    assert read_titles(str(folder)) == {}


def test_a_malformed_file_is_named(folder: Path) -> None:
    (folder / "ml.item").write_text("price:float\tname:token\n3\tHigh Noon\n")
    with pytest.raises(DataError, match=r"ml\.item, line 1, column 'item': no column"):
        read_titles(str(folder))
