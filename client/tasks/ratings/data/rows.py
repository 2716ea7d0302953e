"""Ratings as rows: what every form of them is read into before it has a vocabulary."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from client.data.tables.reader import Table
from client.data.tables.values import Codes, codes, numbers, recoded, times, union
from common.errors import DataError, NothingYetError

Scale = tuple[float, float]
"""Ratings that count as 0 and as 1."""

USER, ITEM, RATING, TIME = "user", "item", "rating", "timestamp"


@dataclass(frozen=True, eq=False)
class Rows:
    """R ratings in the order of the file.

    Args:
        user: R, codes into `users`.
        item: R, codes into `items`.
        rating: R, in the data's own units.
        time: R, seconds; 0 where unknown.
        users: Names, also of those without a rating.
        items: Names of the products.
    """

    user: Codes
    item: Codes
    rating: NDArray[np.float64]
    time: NDArray[np.float64]
    users: Sequence[str]
    items: Sequence[str]


def rows_of(table: Table, title_of: dict[str, str], scale: Scale | None) -> Rows:
    """The ratings of a table; a row with a user and nothing else declares a person, who may have none.

    Args:
        table: The rows.
        title_of: Our name of a column -> the file's, the time's being optional.
        scale: What ratings must lie on, if it is known.

    Raises:
        DataError: A cell is empty, no number or off the scale; with file, line and column.
    """
    _, users = codes(table.column(title_of[USER]))
    others = np.any([table.filled(title) for name, title in title_of.items() if name != USER], axis=0)
    rated = table.where(others | ~table.filled(title_of[USER]))
    for title in title_of.values():
        filled = rated.filled(title)
        if not filled.all():
            raise rated.error(int(np.argmin(filled)), title, "empty cell; give every row a user, an item and a rating")
    ratings = _on_scale(rated, title_of[RATING], scale)
    place = {name: k for k, name in enumerate(users)}
    user = np.array([place[name] for name in rated.column(title_of[USER]).to_pylist()], np.int64)
    item, items = codes(rated.column(title_of[ITEM]))
    time = times(rated, title_of[TIME]) if TIME in title_of else np.zeros(len(rated))
    return Rows(user, item, ratings, time, [name for name in users if name], items)


def people(table: Table) -> Rows:
    """Nothing but people, who stand in every column of the table."""
    names = dict.fromkeys(name for column in table.columns for name in column.to_pylist() if name)
    nothing = np.zeros(0, np.int64)
    return Rows(nothing, nothing, np.zeros(0), np.zeros(0), list(names), [])


def joined(parts: Sequence[Rows]) -> Rows:
    """Several files' rows as one; equal names are the same user, and the same product."""
    users, items = union([part.users for part in parts]), union([part.items for part in parts])
    return Rows(
        np.concatenate([recoded(part.user, part.users, users) for part in parts]),
        np.concatenate([recoded(part.item, part.items, items) for part in parts]),
        np.concatenate([part.rating for part in parts]),
        np.concatenate([part.time for part in parts]),
        list(users),
        list(items),
    )


def latest(rows: Rows) -> Codes:
    """Which rows count where a person rated a product more than once: the latest, of equal times the last in the file."""
    order = np.lexsort((np.arange(len(rows.user)), rows.time))
    backwards = np.stack([rows.user, rows.item], axis=1)[order[::-1]]
    _, first = np.unique(backwards, axis=0, return_index=True)
    return np.sort(order[::-1][first])


def scale_of(rows: Rows, published: Scale | None, path: Path) -> Scale:
    """The published set's scale if the ratings lie on it; else from 0, or the lowest below, to the highest rating.

    Raises:
        NothingYetError: There is no rating.
        DataError: There is none but zeros.
    """
    if not len(rows.rating):
        raise NothingYetError("no rating; there is nothing to learn from", path)
    lowest, highest = float(rows.rating.min()), float(rows.rating.max())
    if published and published[0] <= lowest and highest <= published[1]:
        return published
    if highest <= min(0.0, lowest):
        raise DataError(f"all ratings are {highest:g}; name the scale with --catalogue", path)
    return min(0.0, lowest), highest


def _on_scale(table: Table, title: str, scale: Scale | None) -> NDArray[np.float64]:
    ratings = numbers(table, title)
    if np.isnan(ratings).any():
        raise table.error(
            int(np.isnan(ratings).argmax()), title, "not a number; a row without a rating has no place here"
        )
    if scale:
        off = (ratings < scale[0]) | (ratings > scale[1])
        if off.any():
            row = int(off.argmax())
            message = f"off the federation's scale, which goes from {scale[0]:g} to {scale[1]:g}"
            raise table.error(row, title, message)
    return ratings
