"""Markets of Online Retail: invoices of a gift shop by country, with the items' names (CC0)."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.compute as pc

from client.data.tables.reader import read_table
from client.data.tables.schema import Column, TableSchema
from client.data.tables.table import Table
from client.tasks.markets.data.markets import Markets
from client.tasks.markets.data.reader import ABSENT, NO_RECORDS, Records, goods_of, to_dataset
from common.arrays import Ints

INVOICE, ITEM, TITLE, QUANTITY, COUNTRY = "invoice", "item", "description", "quantity", "country"

SCHEMA = TableSchema(
    columns=(
        Column(INVOICE, "text"),
        Column(ITEM, "text"),
        Column(TITLE, "text", blank="missing"),
        Column(QUANTITY, "number"),
        Column(COUNTRY, "text"),
    )
)
"""Columns of a line of an invoice."""

COUNTRIES: Mapping[str, str] = {
    "Australia": "au",
    "Belgium": "be",
    "EIRE": "ie",
    "France": "fr",
    "Germany": "de",
    "Italy": "it",
    "Netherlands": "nl",
    "Portugal": "pt",
    "Spain": "es",
    "Switzerland": "ch",
    "United Kingdom": "uk",
}
"""Country of an invoice -> name of its market."""

CODE = r"^\d{5}[A-Za-z]*$"
"""Codes of items; others are postage, samples and the like."""

LARGEST = 60
"""Largest number of items of an invoice; larger ones are left out, since all their pairs were edges."""

DRAWN = 3000
"""Number of invoices of the United Kingdom, drawn at random; it has six times as many."""


def read_online_retail(source: Path) -> Markets:
    """Return the markets: an invoice is a user, its lines of positive quantity are ratings.

    Raises:
        DataError: The table is missing or malformed.
    """
    table = read_table(source / "invoices.csv.gz", SCHEMA)
    is_item = np.asarray(pc.match_substring_regex(table.columns[ITEM], CODE), bool)
    is_sold = np.asarray(pc.is_in(table.columns[COUNTRY], pyarrow.array(list(COUNTRIES))), bool)
    table = table.where(is_item & is_sold & (table.numbers(QUANTITY) > 0))
    (invoice, invoices), (item, items), (country, countries) = map(table.codes, (INVOICE, ITEM, COUNTRY))
    lines = np.stack([invoice, item], axis=1)
    markets = {
        COUNTRIES[name]: Records(_of_invoices(lines[country == place]), NO_RECORDS, invoices, items)
        for place, name in enumerate(countries)
    }
    goods = goods_of(items, [(title, "") for title in _titles(table, item)])
    return to_dataset(markets, goods, (), source)


def _of_invoices(lines: Ints) -> Ints:
    """Return the distinct lines of at most `DRAWN` invoices that are not too large; they stand for no row."""
    drawn = np.random.default_rng(0).permutation(np.unique(lines[:, 0]))[:DRAWN]
    lines = np.unique(lines[np.isin(lines[:, 0], drawn)], axis=0)
    users, counts = np.unique(lines[:, 0], return_counts=True)
    lines = lines[np.isin(lines[:, 0], users[counts <= LARGEST])]
    return np.column_stack([lines, np.full(len(lines), ABSENT)])


def _titles(table: Table, item: Ints) -> list[str]:
    """Return the most frequent description of each item, the first of several; empty without any."""
    title, titles = table.codes(TITLE)
    pairs, counts = np.unique(np.stack([item, title], axis=1)[title >= 0], axis=0, return_counts=True)
    texts = np.array(titles)[pairs[:, 1]]
    order = np.lexsort((texts, -counts, pairs[:, 0]))
    items, first = np.unique(pairs[order, 0], return_index=True)
    best = dict(zip(items.tolist(), texts[order][first].tolist(), strict=True))
    return [best.get(place, "") for place in range(int(item.max()) + 1)]
