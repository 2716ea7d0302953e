"""Reader of ratings in all forms, as rows and as raters under a vocabulary."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from client.data.dataset import DataSummary
from client.data.tables.account import RowAccount, with_account
from client.data.tables.files import TEST as TEST_SPLIT
from client.data.tables.files import split_files
from client.data.tables.reader import read_table
from client.data.tables.schema import DEFAULT_DIALECT, Codes, Dialect, combine_codes, index_names, join_rows
from client.data.tables.table import Table
from client.tasks.ratings.data.raters import (
    FREE,
    ITEM,
    PEOPLE,
    RATING,
    SCHEMA,
    SPLIT,
    TEST,
    TIME,
    TRAIN,
    USER,
    VALIDATION,
    PublishedRatings,
    Rater,
    Ratings,
    Scale,
    files_of,
    form_of,
    split_sizes,
)
from common.arrays import Floats
from common.errors import DataError, NothingYetError
from common.tasks.ratings.options import RatingsOptions
from common.tasks.ratings.vocabulary import ProductCatalogue

SPLITS = {"train": TRAIN, "validation": VALIDATION, "valid": VALIDATION, "test": TEST}
"""Names of splits."""


@dataclass(frozen=True, eq=False)
class RatingRows:
    """R ratings in the order of the file.

    Args:
        user: R, codes into `users`.
        item: R, codes into `items`.
        rating: R, in the data's own units.
        time: R, seconds; 0 where unknown.
        split: R, see `Rater`.
        row: R, numbers of the rows in the account.
        people: Numbers of the rows that declare a person alone.
        users: Names, also of those without a rating.
        items: Names of the products.
    """

    user: Codes
    item: Codes
    rating: Floats
    time: Floats
    split: Codes
    row: Codes
    people: Codes
    users: Sequence[str]
    items: Sequence[str]


def to_rows(table: Table, scale: Scale | None, split: int = FREE) -> RatingRows:
    """Return the ratings of a table; a row with a user alone declares a person without ratings.

    Args:
        table: RatingRows under the names of `SCHEMA`.
        scale: Lowest and highest rating of the federation.
        split: Split of ratings that name none in a column.

    Raises:
        DataError: A cell is empty or off the scale, or a split unknown; with file, line and column.
    """
    others = [name for name in (ITEM, RATING, TIME) if name in table]
    user, users = table.codes(USER)
    is_rating = np.any([table.filled(name) for name in others], axis=0)
    rated = table.where(is_rating)
    rated.require(ITEM, RATING, remedy="give every row a user, an item and a rating, or leave it out")
    rating = rated.numbers(RATING)
    if scale:
        low, high = scale
        off = (rating < low) | (rating > high)
        if off.any():
            problem = f"is off the federation's scale, which goes from {low:g} to {high:g}"
            raise rated.error(RATING, off, problem, "correct it, or leave the row out")
    item, items = rated.codes(ITEM)
    time = np.nan_to_num(rated.numbers(TIME)) if TIME in table else np.zeros(len(rated))
    people = table.numbered[~is_rating]
    return RatingRows(user[is_rating], item, rating, time, _splits(rated, split), rated.numbered, people, users, items)


def _splits(rated: Table, split: int) -> Codes:
    if SPLIT not in rated:
        return np.full(len(rated), split)
    code, names = rated.codes(SPLIT)
    unknown = np.array([name not in SPLITS for name in names] + [False])[code]
    if unknown.any():
        raise rated.error(SPLIT, unknown, "is no split", f"write one of {', '.join(SPLITS)}, or leave it empty")
    return np.array([*(SPLITS[name] for name in names), split], np.int64)[code]


def to_people(table: Table) -> RatingRows:
    """Return nothing but people, who stand in every column of the table."""
    users = index_names([table.codes(name)[1] for name in table.columns])
    nothing = np.zeros(0, np.int64)
    return RatingRows(nothing, nothing, np.zeros(0), np.zeros(0), nothing, nothing, nothing, list(users), [])


def find_latest(rows: RatingRows) -> Codes:
    """Return the rows that count where a person rated a product more than once.

    The latest counts, of equal times the last in the file.
    """
    backwards = np.argsort(rows.time, kind="stable")[::-1]
    _, first = np.unique(combine_codes(rows.user, rows.item)[backwards], return_index=True)
    return np.sort(backwards[first])


def find_scale(rows: RatingRows, published: Scale | None, path: Path) -> Scale:
    """Return the published set's scale if the ratings lie on it.

    Any other scale goes from 0, or from the lowest rating below, to the highest.

    Raises:
        NothingYetError: There is no rating.
        DataError: All ratings are 0.
    """
    if not len(rows.rating):
        raise NothingYetError("no rating; there is nothing to learn from", path)
    lowest, highest = float(rows.rating.min()), float(rows.rating.max())
    if published and published[0] <= lowest and highest <= published[1]:
        return published
    if highest <= min(0.0, lowest):
        message = f"all {len(rows.rating):,} ratings are {highest:g}, so the scale is unknown"
        raise DataError(f"{message}; give low and high in a vocabulary file (--catalogue)", path)
    return min(0.0, lowest), highest


def read_raters(
    source: Path | str, products: ProductCatalogue | None = None, *, dialect: Dialect = DEFAULT_DIALECT
) -> Ratings:
    """Read the raters of one source, in the order of their names.

    If a person rated a product several times, the latest rating counts; without times, the last in the file.

    Args:
        source: Table `user,item,rating[,timestamp]` (CSV, TSV, Parquet or JSON lines, with or without a header);
            MovieLens 100K (`u.data`) or 1M (`ratings.dat`) or FilmTrust, as file or folder; or a folder of tables. All but
            Parquet may be gzipped.
        products: Vocabulary and scale of the federation; ratings of other products are skipped and counted in a note.
            None for the rated products, by name, on the published set's scale or else from 0 to the highest rating.
        dialect: Columns and forms of the owner's tables.

    Raises:
        DataError: The data are missing, empty or malformed, or a rating is off the scale; with file, line and column.
    """
    path = Path(source)
    form = form_of(path)
    scale = (products.low, products.high) if products else None
    dialect = with_account(dialect, SCHEMA)
    rows = join_rows(_read(path, form, scale, dialect), {"user": "users", "item": "items"})
    if products is None:
        low, high = find_scale(rows, form.scale if form else None, path)
        products = ProductCatalogue(items=tuple(sorted(rows.items)), low=low, high=high)
    return _dataset(rows, products, path, dialect.account)


def _read(path: Path, form: PublishedRatings | None, scale: Scale | None, dialect: Dialect) -> list[RatingRows]:
    ratings, named = files_of(path, form)
    splits = {} if path.is_file() else {file: split for split, file in split_files(path)}
    train = TRAIN if TEST_SPLIT in splits.values() else FREE
    codes = [SPLITS.get(splits.get(file, ""), train) or train for file in ratings]
    tables = [
        to_rows(read_table(file, SCHEMA, dialect), scale, code) for file, code in zip(ratings, codes, strict=True)
    ]
    return tables + [to_people(read_table(file, PEOPLE)) for file in named]


def _dataset(rows: RatingRows, products: ProductCatalogue, path: Path, account: RowAccount) -> Ratings:
    if not rows.users:
        raise DataError("nobody; there is nothing to learn from", path)
    index = {name: k for k, name in enumerate(products.items)}
    item = np.array([index.get(name, -1) for name in rows.items], np.int64)[rows.item] if rows.items else rows.item
    counted = find_latest(rows)
    listed = counted[item[counted] >= 0]
    account.lose(rows.row, rows.row[counted], NOUN, REPEATED, merged=True)
    account.lose(rows.row[counted], rows.row[listed], NOUN, "of products outside the vocabulary skipped")
    reading = account.close(len(listed) + len(rows.people))
    order = listed[np.argsort(rows.user[listed], kind="stable")]
    ends = np.cumsum(np.bincount(rows.user[order], minlength=len(rows.users)))[:-1]
    each = zip(rows.users, *(np.split(of[order], ends) for of in (item, rows.rating, rows.split)), strict=True)
    is_split = bool((rows.split != FREE).any())
    raters = [Rater(name, items, ratings, splits if is_split else None) for name, items, ratings, splits in each]
    ordered = tuple(sorted(raters, key=lambda rater: rater.name))
    return Ratings(ordered, products, account.notes_of(reading), reading=reading)


REPEATED = "replaced by a later one of the same person and product"

NOUN = ("rating", "ratings")


def summarize(options: RatingsOptions, ratings: Ratings) -> DataSummary:
    """Return ratings of each person, those to train on and those held out."""
    count = np.array([len(rater.items) for rater in ratings.units], np.int64)
    sizes = np.array([split_sizes(rater, options) for rater in ratings.units], np.int64).reshape(-1, 2)
    of = " without a split" if any(rater.splits is not None for rater in ratings.units) else ""
    return DataSummary(
        record=NOUN,
        records=count,
        train=sizes[:, 0],
        test=sizes[:, 1],
        need=f"a rater holds {options.test_share:.0%} of the ratings{of} out, rounded down (tasks.ratings.test-share)",
        totals={"item": len(ratings.vocabulary.items)},
    )
