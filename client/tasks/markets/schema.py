"""Columns of markets: ratings, pairs of items that go together, and catalogues."""

from client.data.tables.schema import Column, TableSchema
from client.lists.titles import COLUMNS

MARKET, USER, ITEM, RATING, FIRST, SECOND = ("market", "user", "item", "rating", "item_a", "item_b")

SCHEMA = TableSchema(
    columns=(
        Column(MARKET, "text", required=False),
        Column(USER, "text", ("userid",), required=False, blank="missing"),
        Column(ITEM, "text", ("itemid", "asin"), required=False, blank="missing"),
        Column(RATING, "number", ("rate",), required=False, blank="missing"),
        Column(FIRST, "text", ("item1", "source"), required=False, blank="missing"),
        Column(SECOND, "text", ("item2", "target"), required=False, blank="missing"),
    ),
    layouts=((USER, ITEM), (FIRST, SECOND)),
    positions=(USER, ITEM, RATING, "date"),
    unit=MARKET,
)
"""Columns of markets: a row is a rating, a pair of items, or the name of a market without either.

XMarket's raw ratings have no header."""

CATALOGUE = TableSchema(columns=(*COLUMNS, Column("description", "text", required=False, blank="missing", many=True)))
