"""Reader of market data in all forms, as records by name and as markets under a catalogue."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow

from client.data.dataset import DataSummary, floor_share
from client.data.tables.account import ROWS, RowAccount, with_account
from client.data.tables.files import TABLES, load, plain_name, stem_of, suffix_of, tables_in
from client.data.tables.reader import detect_cells, read_table, to_table
from client.data.tables.schema import DEFAULT_DIALECT, Dialect, combine_codes, find_names, index_names, recode
from client.data.tables.table import Table, to_codes
from client.tasks.markets.data.graph import graph_of, least_users
from client.tasks.markets.data.markets import (
    CATALOGUE,
    FIRST,
    ITEM,
    ITEMS,
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
    read_metadata,
)
from common.arrays import Flags, Ints
from common.errors import DataError
from common.tasks.markets.options import MarketsOptions
from common.tasks.markets.vocabulary import MarketCatalogue
from common.text import count

ABSENT = -1
NO_RECORDS = np.zeros((0, 3), np.int64)


@dataclass(frozen=True, eq=False)
class Records:
    """Ratings and pairs of one market.

    Args:
        ratings: R × 3, codes into `users` and `items`, and the number of the row in the account; in the order of the file.
        pairs: P × 3, codes into `items` twice, and the number of the row.
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
        rows = np.full((len(pairs), 1), ABSENT)
        return cls(NO_RECORDS, np.hstack([code.reshape(-1, 2), rows]), (), items)

    def with_others(self, other: "Records") -> "Records":
        """Return the records of two files; equal names are the same user, and the same item."""
        users, items = index_names([self.users, other.users]), index_names([self.items, other.items])
        both = (self, other)
        user, item = (
            np.concatenate([recode(part.ratings[:, k], (part.users, part.items)[k], names) for part in both])
            for k, names in enumerate((users, items))
        )
        pairs = np.concatenate([recode(part.pairs[:, :2], part.items, items) for part in both])
        rated = np.column_stack([user, item, np.concatenate([part.ratings[:, 2] for part in both])])
        paired = np.column_stack([pairs, np.concatenate([part.pairs[:, 2] for part in both])])
        return Records(rated, paired, list(users), list(items))


def to_records(table: Table, name: str) -> dict[str, Records]:
    """Return the markets of a table, one of that name unless the table names them itself.

    Raises:
        DataError: A cell that names something is empty; with file, line and column.
    """
    table = table.listed(SECOND if FIRST in table else ITEM) if ITEMS in table else table
    rated, paired = {USER, ITEM} <= table.columns.keys(), {FIRST, SECOND} <= table.columns.keys()
    is_rating = _holds(table, (USER, ITEM), alone=not paired) if rated else np.zeros(len(table), bool)
    is_pair = _holds(table, (FIRST, SECOND), alone=not rated) if paired else np.zeros(len(table), bool)
    market, markets = table.codes(MARKET) if MARKET in table else (np.zeros(len(table), np.int64), [name])
    user, users = table.codes(USER) if rated else (market, [])
    named = [column for column in (ITEM, FIRST, SECOND) if column in table]
    code, items = to_codes(pyarrow.concat_arrays([table.columns[column] for column in named]))
    item = dict(zip(named, np.split(code, len(named)), strict=True))

    found, row = {}, table.numbered
    order = np.argsort(market, kind="stable")
    for number, rows in enumerate(np.split(order, np.cumsum(np.bincount(market))[:-1])):
        ratings, pairs = rows[is_rating[rows]], rows[is_pair[rows]]
        found[markets[number]] = Records(
            np.stack([user[ratings], item[ITEM][ratings], row[ratings]], axis=1) if rated else NO_RECORDS,
            np.stack([item[FIRST][pairs], item[SECOND][pairs], row[pairs]], axis=1) if paired else NO_RECORDS,
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


def to_dataset(
    markets: Mapping[str, Records],
    goods: MarketCatalogue | None,
    described: Sequence[Product],
    path: Path,
    account: RowAccount | None = None,
) -> Markets:
    """Return the markets under the catalogue `goods`; None for the catalogue of all their items.

    `described` is what published metadata say of items; errors name `path`.

    Raises:
        DataError: A market has no row whose items the catalogue knows.
    """
    goods, account = goods or _catalogue(markets, described), account or RowAccount()
    named_rows = [rows[:, 2] for found in markets.values() for rows in (found.ratings, found.pairs)]
    declared = len(np.setdiff1d(account.remaining, np.concatenate(named_rows)))
    used = 0
    index = {item: k for k, item in enumerate(goods.items)}
    numbered, notes = [], []
    for name, records in sorted(markets.items()):
        market, rows = _numbered(name, records, index, path, account)
        numbered.append(market)
        used += rows
        if market.listed and len(market.ratings):
            notes.append(f"market {name}: ratings are not used, since there are lists of items that go together")
    reading = account.close(used + declared)
    remarks = (*account.notes_of(reading), *notes, *_rated(numbered), *_alone(numbered))
    return Markets(tuple(numbered), goods, remarks, reading=reading)


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
        for rows in ((records.ratings[:, 1],) if described else (records.ratings[:, 1], records.pairs[:, :2]))
        for code in np.unique(rows).tolist()
    }
    items = sorted(named | set(titles))
    return goods_of(items, [(titles.get(item, ""), descriptions.get(item, "")) for item in items] or [("", "")])


def goods_of(items: Sequence[str], texts: Sequence[tuple[str, str]]) -> MarketCatalogue:
    """Return a catalogue of items and their (title, description); lists that hold nothing are left out."""
    titles, descriptions = (tuple(column) if any(column) else () for column in zip(*texts, strict=True))
    return MarketCatalogue(items=tuple(items), titles=titles, descriptions=descriptions)


def _numbered(
    name: str, records: Records, index: Mapping[str, int], path: Path, account: RowAccount
) -> tuple[Market, int]:
    """Return a market, and the number of rows that it keeps; the account gets the others."""
    places = np.full(len(records.items), ABSENT)
    for code in np.unique(np.concatenate([records.ratings[:, 1], records.pairs[:, :2].ravel()])).tolist():
        places[code] = index.get(records.items[code], ABSENT)
    ratings = np.stack([_by_appearance(records.ratings[:, 0]), places[records.ratings[:, 1]]], axis=1)
    pairs = places[records.pairs[:, :2]]
    rated, linked = ((rows != ABSENT).all(axis=1) for rows in (ratings, pairs))
    if len(rated) + len(linked) and not (rated.any() or linked.any()):
        rows = len(rated) + len(linked)
        raise DataError(f"none of its {rows} rows is about items of the catalogue; are they of this federation?", path)
    market = Market(name, as_ratings(ratings[rated]), as_pairs(pairs[linked]))
    itself = linked & (pairs[:, 0] == pairs[:, 1])
    first_ratings, first_pairs = _firsts(ratings, rated), _firsts(np.sort(pairs, axis=1), linked & ~itself)
    keeps = [records.pairs[first_pairs, 2]] + ([] if market.listed else [records.ratings[first_ratings, 2]])
    survivors = np.unique(np.concatenate(keeps))
    steps = (
        (
            np.concatenate([records.ratings[~rated, 2], records.pairs[~linked, 2]]),
            ROWS,
            "skipped: the catalogue lacks an item",
        ),
        (records.pairs[itself, 2], PAIRS, "of an item with itself skipped"),
        (records.pairs[linked, 2], PAIRS, "named more than once (either way round) count once"),
        (
            records.ratings[rated, 2] if not market.listed else NO_RECORDS[:, 2],
            RATED,
            "of an item by the same user count once",
        ),
        (records.ratings[:, 2], RATED, "not used beside lists of items that go together"),
    )
    for rows_lost, noun, reason in steps:
        lost = rows_lost[(rows_lost != ABSENT) & ~np.isin(rows_lost, survivors)]
        account.leave(lost, noun, f"of market {name} {reason}", merged=reason.endswith("once"))
    return market, int((survivors != ABSENT).sum())


def _firsts(rows: Pairs, chosen: Flags) -> Ints:
    """Return the places of the first of equal rows among those that are chosen."""
    found = np.flatnonzero(chosen)
    return found[np.unique(combine_codes(*rows[found].T), return_index=True)[1]]


def _by_appearance(code: Ints) -> Ints:
    """Return codes numbered in the order of their first appearance."""
    _, first, group = np.unique(code, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[group], np.int64)


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
    dialect = with_account(dialect, SCHEMA, CATALOGUE)
    markets, described = _folder(path, dialect) if path.is_dir() else _file(path, _market_of(path), dialect)
    catalogue = catalogue_of(path) if path.is_dir() else None
    if catalogue and goods is None:
        goods = read_catalogue(catalogue, replace(dialect, account=None))
    return to_dataset(markets, goods, described, path, dialect.account)


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
    content = load(path, dialect.encoding, dialect.skip_lines)
    if suffix_of(path) != ".json" and not re.fullmatch(METADATA[0], plain_name(path)):
        cells = detect_cells(content, SCHEMA, dialect)
        if cells.delimiter or "asin" not in cells.titles or USER in find_names(cells.titles, SCHEMA, dialect):
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


PAIRS, RATED = ("pair", "pairs"), ("rating", "ratings")


def summarize(options: MarketsOptions, markets: Markets) -> DataSummary:
    """Return pairs of items of each market, those to train on and those held out."""
    least = least_users(options)
    pairs = np.array([len(graph_of(market, least).edges) for market in markets.units], np.int64)
    test = np.array([floor_share(options.test_share, number) for number in pairs.tolist()], np.int64)
    return DataSummary(
        record=("pair of items", "pairs of items"),
        records=pairs,
        train=pairs - test,
        test=test,
        need=f"a pair needs {count(least, 'user')} of both items (tasks.markets.co-rating), or a list of pairs",
        totals={"item": len(markets.vocabulary.items), "rating": sum(len(market.ratings) for market in markets.units)},
    )
