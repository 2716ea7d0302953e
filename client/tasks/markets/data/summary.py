"""Summary of markets for their owner."""

from collections.abc import Sequence

import numpy as np

from client.data.partition import floor_share
from client.data.summary import DataSummary, find_repeated
from client.data.tables.table import Table
from client.tasks.markets.data.graph import graph_of
from client.tasks.markets.data.markets import Markets
from client.tasks.markets.data.split import least_users
from client.tasks.markets.schema import FIRST, ITEM, MARKET, SECOND, USER
from common.tasks.markets.options import MarketsOptions
from common.text import count

AGAIN = "given again count once"


def summarize(options: MarketsOptions, markets: Markets, tables: Sequence[Table]) -> DataSummary:
    """Return pairs of items of each market, those to train on and those held out."""
    least = least_users(options)
    pairs = np.array([len(graph_of(market, least).edges) for market in markets.units], np.int64)
    test = np.array([floor_share(options.test_share, number) for number in pairs.tolist()], np.int64)
    rated = [table for table in tables if {USER, ITEM} <= table.columns.keys()]
    listed = [table for table in tables if {FIRST, SECOND} <= table.columns.keys()]
    again = find_repeated(rated, (MARKET, USER, ITEM), (USER, ITEM), ("rating", "ratings"), AGAIN)
    again += find_repeated(listed, (MARKET, FIRST, SECOND), (FIRST, SECOND), ("pair", "pairs"), AGAIN)
    return DataSummary(
        record=("pair of items", "pairs of items"),
        records=pairs,
        train=pairs - test,
        test=test,
        need=f"a pair needs {count(least, 'user')} of both items (tasks.markets.co-rating), or a list of pairs",
        totals={
            "item": len(markets.vocabulary.items),
            "rating": sum(len(market.ratings) for market in markets.units),
        },
        dropped=tuple(again),
    )
