"""Raters as a table."""

from collections.abc import Iterator
from pathlib import Path

from client.data.tables.writer import write_private_csv
from client.tasks.ratings.data.raters import Rater, Ratings
from client.tasks.ratings.schema import ITEM, RATING, USER
from common.tasks.ratings.vocabulary import ProductCatalogue


def write_raters(path: Path, dataset: Ratings) -> None:
    """Write raters as CSV, readable by the owner only; `read_raters` with the vocabulary inverts it.

    A rater without a rating is a row with a user and nothing else.
    """
    rows = (row for rater in dataset.units for row in _rows(rater, dataset.vocabulary))
    write_private_csv(path, (USER, ITEM, RATING), rows)


def _rows(rater: Rater, products: ProductCatalogue) -> Iterator[tuple[str | float, ...]]:
    for item, rating in zip(rater.items.tolist(), rater.ratings.tolist(), strict=True):
        yield rater.name, products.items[item], rating
    if not len(rater.items):
        yield rater.name, "", ""
