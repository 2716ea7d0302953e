"""Markets of a client in memory and in files, and public sets (Bonab et al., CIKM 2021)."""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from client.data.dataset import Dataset
from client.data.tables.files import TABLES, Content, files_in, plain_name, suffix_of, write_private_csv
from client.data.tables.schema import TITLE_COLUMNS, Column, TableSchema, combine_codes
from common.arrays import Ints
from common.errors import DataError
from common.tasks.markets.vocabulary import MarketCatalogue

MARKET, USER, ITEM, ITEMS, RATING, FIRST, SECOND = ("market", "user", "item", "items", "rating", "item_a", "item_b")

SCHEMA = TableSchema(
    columns=(
        Column(MARKET, "text", required=False),
        Column(USER, "text", ("userid",), required=False, blank="missing"),
        Column(ITEM, "text", ("itemid", "asin", "product", "productid"), required=False, blank="missing"),
        Column(ITEMS, "text", required=False, blank="missing", many=True),
        Column(RATING, "number", ("rate",), required=False, blank="missing"),
        Column(FIRST, "text", ("item1", "source", "sku1", "fromnodeid"), required=False, blank="missing"),
        Column(SECOND, "text", ("item2", "target", "sku2", "tonodeid"), required=False, blank="missing"),
    ),
    layouts=((USER, ITEM), (FIRST, SECOND), (USER, ITEMS), (FIRST, ITEMS)),
    positions=(USER, ITEM, RATING, "date"),
    unit=MARKET,
)
"""Columns of markets: a row is a rating, a pair of items, or the name of a market without either.

XMarket's raw ratings have no header."""

CATALOGUE = TableSchema(
    columns=(*TITLE_COLUMNS, Column("description", "text", required=False, blank="missing", many=True))
)


Pairs = Ints
"""Rows of two numbers, P × 2."""


@dataclass(frozen=True, eq=False)
class Market:
    """One market: what becomes a client.

    Args:
        name: Public, such as `uk`.
        ratings: Who rated what, R × 2 of (user, item), in order, each once; users are private and numbered from 0.
        pairs: Items that go together, P × 2, a < b, in order, each once; used alone where there are any.
    """

    name: str
    ratings: Pairs
    pairs: Pairs

    @property
    def listed(self) -> bool:
        """True if the market lists pairs of items itself."""
        return len(self.pairs) > 0


Markets = Dataset[MarketCatalogue, Market]


def as_pairs(rows: Ints) -> Pairs:
    """Return undirected pairs in order, each once; pairs of an item with itself are dropped."""
    if not len(rows):
        return no_rows()
    return _distinct(np.sort(rows[rows[:, 0] != rows[:, 1]], axis=1))


def as_ratings(rows: Ints) -> Pairs:
    """Return ratings in order, each once; users are renumbered without gaps, in their order."""
    if not len(rows):
        return no_rows()
    rows = _distinct(rows)
    return np.stack([np.unique(rows[:, 0], return_inverse=True)[1], rows[:, 1]], axis=1)


def no_rows() -> Pairs:
    """Return an empty table."""
    return np.zeros((0, 2), np.int64)


def _distinct(rows: Pairs) -> Pairs:
    """Return rows in order, each once."""
    _, first = np.unique(combine_codes(*rows.T), return_index=True)
    return rows[first]


CATALOGUE_FILE, ITEMS_OF_RECBOLE = "catalogue", ".item"

RATINGS = (r"(.+)_5core\.txt", r"(.+)_10core\.txt", r"ratings_([a-z]+)_.+\.txt")
"""Names of files of a market's ratings: of users and items with at least 5 or 10 ratings, or raw.

The columns are `userId itemId rate date`; raw files have no header. The first pattern that fits any file counts."""

METADATA = (r"metadata_([a-z]+)_.+\.jsonl?",)
"""A market's products, a line each: asin, title, description, related."""

RELATED = ("alsoBought", "alsoViewed")
"""Lists of `related` that the paper's edges are made of (algorithms.md §5.5)."""


@dataclass(frozen=True)
class Product:
    """A line of a market's metadata.

    Args:
        item: Its ASIN.
        title: May be empty.
        description: May be empty.
        related: Items also bought or viewed.
    """

    item: str
    title: str
    description: str
    related: tuple[str, ...]


def is_published(folder: Path) -> bool:
    """Return True if a folder's files are parts of one data set, not several clients' tables."""
    return bool(named(folder, RATINGS) or named(folder, METADATA) or catalogue_of(folder))


def named(folder: Path, patterns: tuple[str, ...]) -> dict[str, Path]:
    """Return market -> file, by the first pattern that a file of the folder matches."""
    for pattern in patterns:
        fits = [(re.fullmatch(pattern, plain_name(path)), path) for path in files_in(folder)]
        found = {match[1]: path for match, path in fits if match}
        if found:
            return found
    return {}


def catalogue_of(folder: Path) -> Path | None:
    """Return the folder's catalogue, if it has one."""
    return next((path for path in files_in(folder) if is_catalogue(path)), None)


def is_catalogue(path: Path) -> bool:
    """Return True if a file is a catalogue by its name."""
    return plain_name(path) in {f"{CATALOGUE_FILE}{suffix}" for suffix in TABLES} or suffix_of(path) == ITEMS_OF_RECBOLE


def read_metadata(content: Content) -> Iterator[Product]:
    """Read the products of a metadata file, whose lines are JSON or, in some files, Python literals.

    Raises:
        DataError: A line is neither, or has no `asin`; with its number.
    """
    for line, text in content.lines():
        yield _product(_record(text, content.path, line), content.path, line)


def _record(text: str, path: Path, line: int) -> dict[str, Any]:
    record: object = None
    for read in (json.loads, ast.literal_eval):
        try:
            record = read(text.strip())
            break
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    if not isinstance(record, dict):
        raise DataError("not a product; write one JSON object a line", path, line)
    return record


def _product(record: dict[str, Any], path: Path, line: int) -> Product:
    item, related = record.get("asin"), record.get("related")
    if not isinstance(item, str) or not item.strip():
        raise DataError("a product without an id", path, line, "asin")
    lists = [related.get(name) for name in RELATED] if isinstance(related, dict) else []
    others = tuple(str(other).strip() for names in lists if isinstance(names, list) for other in names)
    return Product(item.strip(), _text(record.get("title")), _text(record.get("description")), others)


def _text(value: Any) -> str:
    """Return a text, which may come as a list of paragraphs, or not at all."""
    if isinstance(value, list):
        return " ".join(str(part).strip() for part in value)
    return str(value).strip() if value else ""


def write_markets(path: Path, dataset: Markets) -> None:
    """Write markets as CSV, readable by the owner only; `read_markets` with the vocabulary inverts it.

    A row is a rating or a pair of items; the cells of the other are empty. A market with neither is a row with its name.
    """
    rows = (row for market in dataset.units for row in _rows(market, dataset.vocabulary.items))
    write_private_csv(path, (MARKET, USER, ITEM, FIRST, SECOND), rows)


def _rows(market: Market, ids: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if not len(market.ratings) and not len(market.pairs):
        yield market.name, "", "", "", ""
    yield from ((market.name, f"{user:09d}", ids[item], "", "") for user, item in market.ratings.tolist())
    yield from ((market.name, "", "", ids[a], ids[b]) for a, b in market.pairs.tolist())
