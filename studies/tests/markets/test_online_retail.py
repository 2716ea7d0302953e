"""Invoices become markets by country."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from client.tasks.markets.data.markets import Markets
from common.errors import DataError
from studies.markets.online_retail import LARGEST, read_online_retail

LINES = (
    "1,10001A,RED CUP,2,France",
    "1,10002,BLUE CUP,1,France",
    "2,10001A,RED CUP,1,France",
    "2,10001A,CUP RED,1,France",
    "2,10002,,1,France",
    "2,POST,POSTAGE,1,France",
    "2,10003,TRAY,-1,France",
    "3,10001A,CUP,3,EIRE",
    "3,10003,TRAY,3,EIRE",
    "4,10003,TRAY,3,Norway",
    *(f"5,{20000 + number},LAMP {number},1,EIRE" for number in range(LARGEST + 1)),
)


def read(folder: Path, *lines: str) -> Markets:
    with gzip.open(folder / "invoices.csv.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(("invoice,item,description,quantity,country", *lines)) + "\n")
    return read_online_retail(folder)


def test_an_invoice_is_a_user_and_a_country_a_market(tmp_path: Path) -> None:
    markets = read(tmp_path, *LINES)
    france, ireland = sorted(markets.units, key=lambda market: market.name)
    assert (france.name, ireland.name) == ("fr", "ie")
    items = np.array(markets.vocabulary.items)
    assert [(user, items[item]) for user, item in france.ratings.tolist()] == [
        (0, "10001A"),
        (0, "10002"),
        (1, "10001A"),
        (1, "10002"),
    ]
    assert sorted(items[ireland.ratings[:, 1]]) == ["10001A", "10003"]  # the invoice of too many items is left out


def test_the_title_is_the_most_frequent_description(tmp_path: Path) -> None:
    goods = read(tmp_path, *LINES).vocabulary
    titles = dict(zip(goods.items, goods.titles, strict=True))
    assert (titles["10001A"], titles["10002"], titles["10003"]) == ("RED CUP", "BLUE CUP", "TRAY")
    assert "POST" not in titles


def test_a_damaged_table_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="quantity"):
        read(tmp_path, "1,10001,CUP,many,France")
