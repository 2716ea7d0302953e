"""Ratings and pairs of items by name: the form of every source of markets before it has a catalogue."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow

from client.data.tables.codes import index_names, recode
from client.data.tables.table import Table
from client.data.tables.values import to_codes
from client.tasks.markets.data.markets import Pairs, no_rows
from client.tasks.markets.schema import FIRST, ITEM, MARKET, SECOND, USER
from common.arrays import Flags


@dataclass(frozen=True, eq=False)
class Records:
    """Ratings and pairs of one market.

    Args:
        ratings: R × 2, codes into `users` and `items`, in the order of the file.
        pairs: P × 2, codes into `items`.
        users: Names.
        items: Names.
    """

    ratings: Pairs
    pairs: Pairs
    users: Sequence[str]
    items: Sequence[str]

    @classmethod
    def of_pairs(cls, pairs: Sequence[tuple[str, str]]) -> "Records":
        """Return pairs without ratings."""
        code, items = to_codes(pyarrow.array([name for pair in pairs for name in pair], pyarrow.string()))
        return cls(no_rows(), code.reshape(-1, 2), (), items)

    def with_others(self, other: "Records") -> "Records":
        """Return the records of two files; equal names are the same user, and the same item."""
        users, items = index_names([self.users, other.users]), index_names([self.items, other.items])
        both = (self, other)
        user, item = (
            np.concatenate([recode(part.ratings[:, k], (part.users, part.items)[k], names) for part in both])
            for k, names in enumerate((users, items))
        )
        pairs = np.concatenate([recode(part.pairs, part.items, items) for part in both])
        return Records(np.stack([user, item], axis=1), pairs, list(users), list(items))


def to_records(table: Table, name: str) -> dict[str, Records]:
    """Return the markets of a table, one of that name unless the table names them itself.

    Raises:
        DataError: A cell that names something is empty; with file, line and column.
    """
    rated, paired = {USER, ITEM} <= table.columns.keys(), {FIRST, SECOND} <= table.columns.keys()
    is_rating = _holds(table, (USER, ITEM), alone=not paired) if rated else np.zeros(len(table), bool)
    is_pair = _holds(table, (FIRST, SECOND), alone=not rated) if paired else np.zeros(len(table), bool)
    market, markets = table.codes(MARKET) if MARKET in table else (np.zeros(len(table), np.int64), [name])
    user, users = table.codes(USER) if rated else (market, [])
    named = [column for column in (ITEM, FIRST, SECOND) if column in table]
    code, items = to_codes(pyarrow.concat_arrays([table.columns[column] for column in named]))
    item = dict(zip(named, np.split(code, len(named)), strict=True))

    found = {}
    order = np.argsort(market, kind="stable")
    for place, rows in enumerate(np.split(order, np.cumsum(np.bincount(market))[:-1])):
        ratings, pairs = rows[is_rating[rows]], rows[is_pair[rows]]
        found[markets[place]] = Records(
            np.stack([user[ratings], item[ITEM][ratings]], axis=1) if rated else no_rows(),
            np.stack([item[FIRST][pairs], item[SECOND][pairs]], axis=1) if paired else no_rows(),
            users,
            items,
        )
    return found


def _holds(table: Table, names: tuple[str, str], *, alone: bool) -> Flags:
    """Return the rows with a rating or a pair: all, if the table has nothing else and names no market.

    Raises:
        DataError: One of their cells is empty.
    """
    filled: Flags = np.any([table.filled(name) for name in names], axis=0) | (alone and MARKET not in table)
    table.where(filled).require(*names, remedy="fill it, or leave the row out")
    return filled
