"""Which files of a folder are markets, and what XMarket's own files hold (Bonab et al., CIKM 2021)."""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from client.data.tables.reader import opened, plain_name, suffix_of
from client.tasks.markets.data.table_rows import delimiter_of, header_of
from common.errors import DataError

CATALOGUE = "catalogue"
TABLES = (".csv", ".tsv")

RATINGS = (r"(.+)_5core\.txt", r"(.+)_10core\.txt", r"ratings_([a-z]+)_.+\.txt")
"""Ratings of a market, `userId itemId rate date`: as its authors' code leaves them, of users and items with at least 5 or 10
ratings, or raw, without a header. The first pattern that any file of a folder fits counts, the others are left aside."""

METADATA = (r"metadata_([a-z]+)_.+\.jsonl?",)
"""A market's products, a line each: asin, title, description, related."""

RELATED = ("alsoBought", "alsoViewed")
"""Lists of `related` that the paper's edges are made of (algorithms.md §5.5)."""

COLUMNS = ("userId", "itemId", "rate", "date")


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
    """Whether a folder's files are parts of one data set, not several clients' tables."""
    return bool(named(folder, RATINGS) or named(folder, METADATA) or catalogue_of(folder))


def named(folder: Path, patterns: tuple[str, ...]) -> dict[str, Path]:
    """Market -> its file, by the first of the patterns that any file of the folder fits."""
    for pattern in patterns:
        fits = [(re.fullmatch(pattern, plain_name(path)), path) for path in files_of(folder)]
        found = {match[1]: path for match, path in fits if match}
        if found:
            return found
    return {}


def catalogue_of(folder: Path) -> Path | None:
    """The folder's catalogue, if it has one."""
    return next((path for path in files_of(folder) if is_catalogue(path)), None)


def is_catalogue(path: Path) -> bool:
    """Whether a file is a catalogue by its name."""
    return plain_name(path) in {f"{CATALOGUE}{suffix}" for suffix in TABLES}


def files_of(folder: Path) -> list[Path]:
    """The files of a folder, by name."""
    return [path for path in sorted(folder.iterdir()) if path.is_file()]


def titles_of(path: Path) -> tuple[str, ...]:
    """Titles of a table without a header, of which XMarket's raw ratings are the only ones; else none."""
    cells = header_of(path)
    raw = suffix_of(path) == ".txt" and delimiter_of(path) == " " and len(cells) == len(COLUMNS)
    return COLUMNS if raw and cells[0] != COLUMNS[0] else ()


def read_metadata(path: Path) -> Iterator[Product]:
    """The products of a metadata file; a line is JSON or, as in some of the published files, a Python literal.

    Raises:
        DataError: A line is neither, or has no `asin`; with its number.
    """
    with opened(path) as file:
        for line, text in enumerate(file, start=1):
            if text.strip():
                yield _product(_record(text, path, line), path, line)


def _record(text: str, path: Path, line: int) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except json.JSONDecodeError:
        try:
            record = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError):
            record = None
    if not isinstance(record, dict):
        raise DataError("not a product; write one JSON object a line", path, line)
    return record


def _product(record: dict[str, Any], path: Path, line: int) -> Product:
    item, related = record.get("asin"), record.get("related") or {}
    if not isinstance(item, str) or not item.strip():
        raise DataError("a product without an id", path, line, "asin")
    lists = [related.get(name) or [] for name in RELATED] if isinstance(related, dict) else []
    others = tuple(str(other).strip() for names in lists for other in names)
    return Product(item.strip(), _text(record.get("title")), _text(record.get("description")), others)


def _text(value: Any) -> str:
    """Texts come as such, as lists of paragraphs, or not at all."""
    if isinstance(value, list):
        return " ".join(str(part).strip() for part in value)
    return str(value).strip() if value else ""
