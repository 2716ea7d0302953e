"""Files of markets in a folder, and XMarket's own files (Bonab et al., CIKM 2021)."""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from client.data.tables.formats import TABLES, Content, files_in, plain_name, suffix_of
from common.errors import DataError

CATALOGUE, ITEMS_OF_RECBOLE = "catalogue", ".item"

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
    return plain_name(path) in {f"{CATALOGUE}{suffix}" for suffix in TABLES} or suffix_of(path) == ITEMS_OF_RECBOLE


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
