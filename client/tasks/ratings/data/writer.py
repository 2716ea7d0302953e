"""Raters as a table."""

from collections.abc import Iterator
from pathlib import Path

from client.data.tables.writer import write_private_csv
from client.tasks.ratings.data.raters import FREE, TEST, TRAIN, VALIDATION, Rater, Ratings
from client.tasks.ratings.schema import ITEM, RATING, SPLIT, USER
from common.tasks.ratings.vocabulary import ProductCatalogue

NAMES = {FREE: "", TRAIN: "train", VALIDATION: "validation", TEST: "test"}
"""Splits as written in a table."""


def write_raters(path: Path, dataset: Ratings) -> None:
    """Write raters as CSV, readable by the owner only; `read_raters` with the vocabulary inverts it.

    A rater without a rating is a row with a user and nothing else.
    """
    is_split = any(rater.splits is not None for rater in dataset.units)
    columns = (USER, ITEM, RATING, SPLIT)[: 4 if is_split else 3]
    rows = (row[: len(columns)] for rater in dataset.units for row in _rows(rater, dataset.vocabulary))
    write_private_csv(path, columns, rows)


def _rows(rater: Rater, products: ProductCatalogue) -> Iterator[tuple[str | float, ...]]:
    splits = [FREE] * len(rater.items) if rater.splits is None else rater.splits.tolist()
    for item, rating, split in zip(rater.items.tolist(), rater.ratings.tolist(), splits, strict=True):
        yield rater.name, products.items[item], rating, NAMES[split]
    if not len(rater.items):
        yield rater.name, "", "", ""
