"""Raters as a table."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from client.data.tables.writer import private_csv
from client.tasks.ratings.data.raters import Rater
from client.tasks.ratings.schema import ITEM, RATING, USER
from common.tasks.ratings.vocabulary import ProductCatalogue


def write_raters(path: Path, raters: Iterable[Rater], products: ProductCatalogue) -> None:
    """Write raters as CSV, readable by the owner only; `read_raters` with the products inverts it.

    A rater without a rating is a row with a user and nothing else.
    """
    with private_csv(path) as writer:
        writer.writerow((USER, ITEM, RATING))
        for rater in raters:
            writer.writerows(_lines(rater, products))


def _lines(rater: Rater, products: ProductCatalogue) -> Iterator[tuple[str | float, ...]]:
    for item, rating in zip(rater.items.tolist(), rater.ratings.tolist(), strict=True):
        yield rater.name, products.items[item], rating
    if not len(rater.items):
        yield rater.name, "", ""
