"""Reader of market data in all forms, as records by name and as markets under a catalogue."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow

from client.data.dataset import DataSummary, floor_share
from client.data.tables.files import TABLES, load, plain_name, stem_of, suffix_of, tables_in
from client.data.tables.reader import detect_cells, read_table, to_table
from client.data.tables.schema import DEFAULT_DIALECT, Dialect, find_names, index_names, recode
from client.data.tables.table import Table, find_repeated, to_codes
from client.tasks.markets.data.graph import graph_of, least_users
from client.tasks.markets.data.markets import (
    CATALOGUE,
    FIRST,
    ITEM,
    MARKET,
    METADATA,
    RATINGS,
    SCHEMA,
    SECOND,
    USER,
    Market,
    Markets,
    Pairs,
    Product,
    as_pairs,
    as_ratings,
    catalogue_of,
    is_catalogue,
    named,
    no_rows,
    read_metadata,
)
from common.arrays import Flags, Ints
from common.errors import DataError
from common.tasks.markets.options import MarketsOptions
from common.tasks.markets.vocabulary import MarketCatalogue
from common.text import count


@dataclass(frozen=True, eq=False)
class Records:
    """Ratings and pairs of one market.

    Args:
        ratings: R × 2, codes into `users` and `items`, in the order of the file.
        pairs: P × 2, codes into `items`.
        users: Names.
        items: Names.
    """

    ratings: Pairs
    pairs: Pairs
    users: Sequence[str]
    items: Sequence[str]

    @classmethod
    def of_pairs(cls, pairs: Sequence[tuple[str, str]]) -> "Records":
        """Return pairs without ratings."""
        code, items = to_codes(pyarrow.array([name for pair in pairs for name in pair], pyarrow.string()))
        return cls(no_rows(), code.reshape(-1, 2), (), items)

    def with_others(self, other: "Records") -> "Records":
        """Return the records of two files; equal names are the same user, and the same item."""
        users, items = index_names([self.users, other.users]), index_names([self.items, other.items])
        both = (self, other)
        user, item = (
            np.concatenate([recode(part.ratings[:, k], (part.users, part.items)[k], names) for part in both])
            for k, names in enumerate((users, items))
        )
        pairs = np.concatenate([recode(part.pairs, part.items, items) for part in both])
        return Records(np.stack([user, item], axis=1), pairs, list(users), list(items))


def to_records(table: Table, name: str) -> dict[str, Records]:
    """Return the markets of a table, one of that name unless the table names them itself.

    Raises:
        DataError: A cell that names something is empty; with file, line and column.
    """
    rated, paired = {USER, ITEM} <= table.columns.keys(), {FIRST, SECOND} <= table.columns.keys()
    is_rating = _holds(table, (USER, ITEM), alone=not paired) if rated else np.zeros(len(table), bool)
    is_pair = _holds(table, (FIRST, SECOND), alone=not rated) if paired else np.zeros(len(table), bool)
    market, markets = table.codes(MARKET) if MARKET in table else (np.zeros(len(table), np.int64), [name])
    user, users = table.codes(USER) if rated else (market, [])
    named = [column for column in (ITEM, FIRST, SECOND) if column in table]
    code, items = to_codes(pyarrow.concat_arrays([table.columns[column] for column in named]))
    item = dict(zip(named, np.split(code, len(named)), strict=True))

    found = {}
    order = np.argsort(market, kind="stable")
    for number, rows in enumerate(np.split(order, np.cumsum(np.bincount(market))[:-1])):
        ratings, pairs = rows[is_rating[rows]], rows[is_pair[rows]]
        found[markets[number]] = Records(
            np.stack([user[ratings], item[ITEM][ratings]], axis=1) if rated else no_rows(),
            np.stack([item[FIRST][pairs], item[SECOND][pairs]], axis=1) if paired else no_rows(),
            users,
            items,
        )
    return found


def _holds(table: Table, names: tuple[str, str], *, alone: bool) -> Flags:
    """Return the rows with a rating or a pair: all, if the table has nothing else and names no market.

    Raises:
        DataError: One of their cells is empty.
    """
    filled: Flags = np.any([table.filled(name) for name in names], axis=0) | (alone and MARKET not in table)
    table.where(filled).require(*names, remedy="fill it, or leave the row out")
    return filled


ABSENT = -1


def to_dataset(
    markets: Mapping[str, Records], goods: MarketCatalogue | None, described: Sequence[Product], path: Path
) -> Markets:
    """Return the markets under the catalogue `goods`; None for the catalogue of all their items.

    `described` is what published metadata say of items; errors name `path`.

    Raises:
        DataError: A market has no row whose items the catalogue knows.
    """
    goods = goods or _catalogue(markets, described)
    index = {item: k for k, item in enumerate(goods.items)}
    numbered, notes = [], []
    for name, records in sorted(markets.items()):
        market, market_notes = _numbered(name, records, index, path)
        numbered.append(market)
        notes += market_notes
    return Markets(tuple(numbered), goods, (*notes, *_rated(numbered), *_alone(numbered)))


def _catalogue(markets: Mapping[str, Records], described: Sequence[Product]) -> MarketCatalogue:
    """Return the described items, or else all named items, by name, with their longest texts."""
    titles: dict[str, str] = {}
    descriptions: dict[str, str] = {}
    for product in described:
        for texts, text in ((titles, product.title), (descriptions, product.description)):
            texts[product.item] = max(texts.get(product.item, ""), text, key=len)
    named = {
        records.items[code]
        for records in markets.values()
        for rows in ((records.ratings[:, 1],) if described else (records.ratings[:, 1], records.pairs))
        for code in np.unique(rows).tolist()
    }
    items = sorted(named | set(titles))
    return goods_of(items, [(titles.get(item, ""), descriptions.get(item, "")) for item in items] or [("", "")])


def goods_of(items: Sequence[str], texts: Sequence[tuple[str, str]]) -> MarketCatalogue:
    """Return a catalogue of items and their (title, description); lists that hold nothing are left out."""
    titles, descriptions = (tuple(column) if any(column) else () for column in zip(*texts, strict=True))
    return MarketCatalogue(items=tuple(items), titles=titles, descriptions=descriptions)


def _numbered(name: str, records: Records, index: Mapping[str, int], path: Path) -> tuple[Market, list[str]]:
    places = np.full(len(records.items), ABSENT)
    for code in np.unique(np.concatenate([records.ratings[:, 1], records.pairs.ravel()])).tolist():
        places[code] = index.get(records.items[code], ABSENT)
    ratings = np.stack([_by_appearance(records.ratings[:, 0]), places[records.ratings[:, 1]]], axis=1)
    rated, linked = _inside(ratings), _inside(places[records.pairs])
    rows = len(ratings) + len(records.pairs)
    strange = rows - len(rated) - len(linked)
    if rows and strange == rows:
        raise DataError(f"none of its {rows} rows is about items of the catalogue; are they of this federation?", path)
    market = Market(name, as_ratings(rated), as_pairs(linked))
    return market, [f"market {name}: {note}" for note in _notes(market, linked, strange, rated)]


def _by_appearance(code: Ints) -> Ints:
    """Return codes numbered in the order of their first appearance."""
    _, first, group = np.unique(code, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[group], np.int64)


def _inside(rows: Pairs) -> Pairs:
    """Return the rows with items of the catalogue; no user number is missing."""
    inside: Flags = (rows != ABSENT).all(axis=1)
    return rows[inside]


def _notes(market: Market, linked: Pairs, strange: int, rated: Pairs) -> Iterator[str]:
    """Yield notes on what was left out, and on edges."""
    if strange:
        yield f"{strange} rows skipped: items that the catalogue lacks"
    if selves := int((linked[:, 0] == linked[:, 1]).sum()):
        yield f"{selves} pairs of an item with itself skipped"
    if repeated := len(linked) - selves - len(market.pairs):
        yield f"{repeated} pairs named more than once (either way round) count once"
    if repeated := len(rated) - len(market.ratings):
        yield f"{repeated} ratings of the same item by the same user count once"
    if market.listed and len(market.ratings):
        yield "ratings are not used, since there are lists of items that go together"


def _rated(markets: Sequence[Market]) -> Iterator[str]:
    """Yield a note on the edges of markets without lists."""
    names = [market.name for market in markets if not market.listed]
    if names:
        yield (
            f"no lists of items that go together in {', '.join(names)}: an edge is a pair rated by the same users, as many as"
            " tasks.markets.co-rating says"
        )


def _alone(markets: Sequence[Market]) -> Iterator[str]:
    """Return the markets that share no item with any other; parameters of items cannot transfer to them."""
    sold = [{*market.ratings[:, 1].tolist(), *market.pairs.ravel().tolist()} for market in markets]
    for k, market in enumerate(markets):
        others: set[int] = set().union(*(items for j, items in enumerate(sold) if j != k))
        if len(markets) > 1 and sold[k].isdisjoint(others):
            yield f"market {market.name} sells nothing that another market here sells"


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
    catalogue = catalogue_of(path) if path.is_dir() else None
    return to_dataset(markets, goods or (read_catalogue(catalogue, dialect) if catalogue else None), described, path)


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
        first_row = table.cells.place_of(int(table.rows[first[code[again.argmax()]]]))
        raise table.error(
            ITEM, again, f"is listed twice, first in {table.cells.unit} {first_row}", "keep one of the two"
        )
    texts = (table.columns[name].fill_null("").to_pylist() if name in table else [""] * len(table) for name in TEXTS)
    return goods_of(items, list(zip(*texts, strict=True)))


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
    files = [*ratings.items(), *metadata.items()] or [
        (stem_of(file), file) for file in tables_in(path) if not is_catalogue(file)
    ]
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
