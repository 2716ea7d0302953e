"""Ratings as rows: the form of every table of ratings before it has a vocabulary."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from client.data.tables.codes import Codes, combine_codes, index_names, recode
from client.data.tables.table import Table
from client.tasks.ratings.data.published_folder import Scale
from client.tasks.ratings.data.raters import FREE, TEST, TRAIN, VALIDATION
from client.tasks.ratings.schema import ITEM, RATING, SPLIT, TIME, USER
from common.arrays import Floats
from common.errors import DataError, NothingYetError

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
        users: Names, also of those without a rating.
        items: Names of the products.
    """

    user: Codes
    item: Codes
    rating: Floats
    time: Floats
    split: Codes
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
    rated.require(*others, remedy="give every row a user, an item and a rating, or leave it out")
    rating = rated.numbers(RATING)
    if scale:
        low, high = scale
        off = (rating < low) | (rating > high)
        if off.any():
            problem = f"is off the federation's scale, which goes from {low:g} to {high:g}"
            raise rated.error(RATING, off, problem, "correct it, or leave the row out")
    item, items = rated.codes(ITEM)
    time = rated.numbers(TIME) if TIME in table else np.zeros(len(rated))
    return RatingRows(user[is_rating], item, rating, time, _splits(rated, split), users, items)


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
    return RatingRows(nothing, nothing, np.zeros(0), np.zeros(0), nothing, list(users), [])


def join_rows(parts: Sequence[RatingRows]) -> RatingRows:
    """Return several files' rows as one; equal names are the same user, and the same product."""
    users, items = index_names([part.users for part in parts]), index_names([part.items for part in parts])
    return RatingRows(
        np.concatenate([recode(part.user, part.users, users) for part in parts]),
        np.concatenate([recode(part.item, part.items, items) for part in parts]),
        np.concatenate([part.rating for part in parts]),
        np.concatenate([part.time for part in parts]),
        np.concatenate([part.split for part in parts]),
        list(users),
        list(items),
    )


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
