"""Warnings about data beside the notes of their reading: markets whose items have no pair."""

from dataclasses import replace

import numpy as np

from client.tasks.markets.data.markets import Market, Markets, no_rows
from client.tasks.markets.task import TASK
from common.config.parse import parse
from common.options import Scalar
from common.tasks.markets.vocabulary import MarketCatalogue

GOODS = MarketCatalogue(items=tuple("abcd"))
RATED = Market("br", np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 2], [3, 3], [3, 2]]), no_rows())


def said(*markets: Market, **options: Scalar) -> list[str]:
    flat = {f"tasks.markets.{name.replace('_', '-')}": value for name, value in options.items()}
    config = parse({"task": "markets", "method": "fedavg", **flat})
    return list(TASK.warnings(config.options_of(TASK.spec), Markets(markets, GOODS)))


def test_markets_most_of_whose_items_have_no_pair_are_told_with_the_threshold() -> None:
    assert said(RATED) == [], "half of them have one"
    [warning] = said(RATED, replace(RATED, name="jp"), co_rating=3)
    assert warning == (
        "a pair of items needs 3 users of both (tasks.markets.co-rating): 4 of 4 items in br (7 ratings), 4 of 4 items in jp"
        " (7 ratings) have none, so nothing is trained on or measured of those"
    )
    assert said(RATED, co_rating=3, protocol="users") == [], "there one user makes a pair"
