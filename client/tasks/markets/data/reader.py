"""Every form of market data behind one door."""

import re
from pathlib import Path

import numpy as np

from client.data.tables.formats import TABLES, load, plain_name, stem_of, suffix_of, tables_in
from client.data.tables.reader import detect_cells, read_table, to_table
from client.data.tables.schema import DEFAULT_DIALECT, Dialect
from client.data.tables.titles import find_names
from client.tasks.markets.data.assemble import goods_of, to_dataset
from client.tasks.markets.data.markets import Markets
from client.tasks.markets.data.published_folder import (
    METADATA,
    RATINGS,
    Product,
    catalogue_of,
    is_catalogue,
    named,
    read_metadata,
)
from client.tasks.markets.data.records import Records, to_records
from client.tasks.markets.schema import CATALOGUE, ITEM, SCHEMA, USER
from common.errors import DataError
from common.tasks.markets.vocabulary import MarketCatalogue

TEXTS = ("title", "description")


def read_markets(
    source: Path | str, goods: MarketCatalogue | None = None, *, dialect: Dialect = DEFAULT_DIALECT
) -> Markets:
    """Read the markets of one source, in the order of their names.

    Args:
        source: Table of a market, `user,item[,rating]` or `item_a,item_b` (CSV, TSV or text; with a column `market` if it
            holds several); a folder of such tables, each a market named after its file, and optionally `catalogue.csv`
            (`item,title,description`); or XMarket's ratings, its metadata, or both, as published. All may be gzipped.
        goods: Catalogue of the federation; rows with other items are skipped and counted in a note. None for the source's
            own catalogue or, without one, all items of all its markets by name.
        dialect: Columns and forms of the owner's tables.

    Raises:
        DataError: The data are missing, empty or malformed, or a market has nothing in common with the catalogue.
    """
    path = Path(source)
    if not path.exists():
        raise DataError("no such file or folder; give a table, a folder of tables, or 'demo'", path)
    dialect.check(SCHEMA, CATALOGUE)
    markets, described = _folder(path, dialect) if path.is_dir() else _file(path, _market_of(path), dialect)
    own = catalogue_of(path) if path.is_dir() else None
    return to_dataset(markets, goods or (read_catalogue(own, dialect) if own else None), described, path)


def read_catalogue(path: Path, dialect: Dialect = DEFAULT_DIALECT) -> MarketCatalogue:
    """Read a catalogue, items in the order of the file; titles and descriptions may be missing.

    Raises:
        DataError: There is no column of items, or an item is empty or listed twice; with the line.
    """
    table = read_table(path, CATALOGUE, dialect)
    code, items = table.codes(ITEM)
    if len(items) < len(code):
        first = np.unique(code, return_index=True)[1]
        again = np.isin(np.arange(len(code)), first, invert=True)
        place = table.cells.place_of(int(table.rows[first[code[again.argmax()]]]))
        raise table.error(ITEM, again, f"is listed twice, first in {table.cells.unit} {place}", "keep one of the two")
    texts = (table.columns[name].fill_null("").to_pylist() if name in table else [""] * len(table) for name in TEXTS)
    return goods_of(items, list(zip(*texts, strict=True)))


def tables_of(folder: Path) -> list[Path]:
    """Return the tables of a folder that are markets, by name."""
    return [file for file in tables_in(folder) if not is_catalogue(file)]


def _file(path: Path, name: str, dialect: Dialect) -> tuple[dict[str, Records], list[Product]]:
    """Read one file: the markets of a table, or XMarket's metadata of one market."""
    content = load(path)
    if suffix_of(path) != ".json" and not re.fullmatch(METADATA[0], plain_name(path)):
        cells = detect_cells(content, SCHEMA, dialect)
        if "asin" not in cells.titles or USER in find_names(cells.titles, SCHEMA, dialect):
            return to_records(to_table(cells, SCHEMA, dialect), name), []
    products = list(read_metadata(content))
    return {name: Records.of_pairs([(one.item, other) for one in products for other in one.related])}, products


def _folder(path: Path, dialect: Dialect) -> tuple[dict[str, Records], list[Product]]:
    """Read all markets of a folder, and the products that its metadata describe."""
    ratings, metadata = named(path, RATINGS), named(path, METADATA)
    files = [*ratings.items(), *metadata.items()] or [(stem_of(file), file) for file in tables_of(path)]
    if not files:
        raise DataError(
            f"the folder holds no market ({', '.join(TABLES)}, or XMarket's files); name a file in it", path
        )
    markets: dict[str, Records] = {}
    described: list[Product] = []
    for name, file in files:
        found, products = _file(file, name, dialect)
        described += products
        for market, records in found.items():
            markets[market] = markets[market].with_others(records) if market in markets else records
    return markets, described


def _market_of(path: Path) -> str:
    """Return the name of a market whose table does not say: `uk` of `uk.csv.gz`."""
    matches = (re.fullmatch(pattern, plain_name(path)) for pattern in (*RATINGS, *METADATA))
    return next((match[1] for match in matches if match), stem_of(path))
