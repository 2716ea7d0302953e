"""Ratings as the client holds them and as files do, and their split by (seed, name) alone."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from client.data.dataset import Dataset, floor_share, own_rng
from client.data.tables.files import files_in, find_tables, plain_name, write_private_csv
from client.data.tables.schema import Column, TableSchema
from common.arrays import Floats, Ints
from common.tasks.ratings.options import RatingsOptions
from common.tasks.ratings.vocabulary import ProductCatalogue

USER, ITEM, RATING, TIME = POSITIONS = ("user", "item", "rating", "timestamp")
SPLIT = "split"
SCHEMA = TableSchema(
    columns=(
        Column(USER, "text", ("userid", "reviewer", "reviewerid", "rater")),
        Column(ITEM, "text", ("itemid", "movie", "movieid", "product", "productid", "asin"), blank="missing"),
        Column(RATING, "number", ("stars", "score", "overall"), blank="missing"),
        Column(TIME, "time", ("time", "datetime", "unixreviewtime", "date"), required=False, blank="missing"),
        Column(SPLIT, "text", required=False, blank="missing"),
    ),
    positions=POSITIONS,
    unit=USER,
    wide=(ITEM, RATING),
)
"""A row with a user and nothing else declares a person, who may have no rating."""

PEOPLE = TableSchema(columns=(Column("user", "text"), Column("neighbour", "text")))
"""FilmTrust's trust network."""


FREE, TRAIN, VALIDATION, TEST = -1, 0, 1, 2
"""Splits of a rating; the client splits free ones itself."""


@dataclass(frozen=True, eq=False)
class Rater:
    """One person: what becomes a client.

    Args:
        name: Private.
        items: Products rated, each once, n indices into the vocabulary.
        ratings: n, in the data's own units.
        splits: n, the split of each rating; None if all are free.
    """

    name: str
    items: Ints
    ratings: Floats
    splits: Ints | None = None


Ratings = Dataset[ProductCatalogue, Rater]


Scale = tuple[float, float]
"""Ratings that count as 0 and as 1."""


@dataclass(frozen=True)
class PublishedRatings:
    """A published set.

    Args:
        ratings: Names of its files, a pattern in lower case and without `.gz`.
        scale: The ratings that count as 0 and as 1 (explore-ratings.md §1: MovieLens r/5, FilmTrust (r − .5)/3.5).
        people: Name of a file that names people, who may have no rating.
    """

    ratings: str
    scale: Scale
    people: str = ""


FORMS = (
    PublishedRatings(r"filmtrust_\d+_(train|valid)\.tsv", (0.5, 4.0), r"filmtrust_\d+_social\.tsv"),
    PublishedRatings(r"ratings\.txt", (0.5, 4.0)),
    PublishedRatings(r"u\.data", (0.0, 5.0)),
    PublishedRatings(r"ratings\.dat", (0.0, 5.0)),
)
"""FilmTrust as BGTplanner uses it, whole (LibRec), MovieLens 100K and 1M.

People of FilmTrust's trust network without a rating are clients too: 134 of 874."""


def form_of(path: Path) -> PublishedRatings | None:
    """Return the set that a file, or a folder's files, belong to."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return next((form for form in FORMS for file in files if _is(file, form.ratings)), None)


def is_published(folder: Path) -> bool:
    """Return True if a folder's files are parts of one data set, not several clients' tables."""
    return form_of(folder) is not None


def files_of(path: Path, form: PublishedRatings | None) -> tuple[list[Path], list[Path]]:
    """Return the files of ratings, and those of people: the set's, or every table.

    Raises:
        DataError: Nothing has this path, or the folder holds no table.
    """
    if form is None or path.is_file():
        return find_tables(path), []
    files = files_in(path)
    return [file for file in files if _is(file, form.ratings)], [file for file in files if _is(file, form.people)]


def _is(path: Path, pattern: str) -> bool:
    return bool(pattern) and bool(re.fullmatch(pattern, plain_name(path)))


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


@dataclass(frozen=True, eq=False)
class Rated:
    """Some of a person's ratings.

    Args:
        items: n indices into the vocabulary.
        values: n shares of the scale, in [0, 1].
    """

    items: Ints
    values: Floats

    def __len__(self) -> int:
        return len(self.items)

    def first(self, count: int) -> "Rated":
        """Return the first of them."""
        return Rated(self.items[:count], self.values[:count])


@dataclass(frozen=True)
class SplitRater:
    """A person's ratings to train on, in the order of arrival, and those held out."""

    rater: Rater
    train: Rated
    validation: Rated
    test: Rated

    def held_out(self, split: str) -> Rated:
        """Return the ratings of a split."""
        return self.test if split == "test" else self.validation


def split_rater(rater: Rater, products: ProductCatalogue, options: RatingsOptions, seed: int) -> SplitRater:
    """Hold out the ratings of the data's own splits, and shares of free ratings drawn at random.

    The first share is for test, the next, of the rest, for validation, unless the data name validation ratings. Shares are
    rounded down, so one free rating is always left for training; the test ratings do not depend on the validation share.
    The order in which the others arrive is random too, as in the paper.
    """
    order = own_rng(seed, rater.name).permutation(len(rater.items))
    split = np.full(len(order), FREE) if rater.splits is None else rater.splits[order]
    free, given = order[split == FREE], order[split == VALIDATION]
    tested = floor_share(options.test_share, len(free))
    rest = np.concatenate([free[tested:], order[split == TRAIN]])
    validated = 0 if len(given) else floor_share(options.validation_share, len(rest))
    held, tests = (np.concatenate(k) for k in ((rest[:validated], given), (free[:tested], order[split == TEST])))
    values = np.asarray(products.scaled(rater.ratings), np.float64)
    train, validation, test = (Rated(rater.items[k], values[k]) for k in (rest[validated:], held, tests))
    return SplitRater(rater, train, validation, test)


def split_sizes(rater: Rater, options: RatingsOptions) -> tuple[int, int]:
    """Return the number of ratings to train on if a run validates on none of its own choice, and for test."""
    splits = np.full(len(rater.items), FREE) if rater.splits is None else rater.splits
    test = int((splits == TEST).sum()) + floor_share(options.test_share, int((splits == FREE).sum()))
    return len(splits) - test - int((splits == VALIDATION).sum()), test


def arrived(count: int, round_number: int, rounds: int) -> int:
    """Return how many of `count` training ratings have arrived in a round: half at first, all in the last."""
    half = -(-count // 2)
    return half + (count - half) * min(round_number, rounds) // rounds
