"""Summary of a data set for its owner: records of each unit, and rows that are left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow

from client.data.tables.codes import combine_codes
from client.data.tables.table import Table
from client.data.tables.values import to_codes
from common.arrays import Flags, Ints

Nouns = tuple[str, str]
"""Singular and plural."""


@dataclass(frozen=True)
class Dropped:
    """Rows that are not used, for one reason.

    Args:
        count: Number of them.
        noun: Noun, such as `duplicate rule`.
        reason: Rest of the sentence, such as `dropped`.
        example: Place of the first; empty if unknown.
    """

    count: int
    noun: Nouns
    reason: str
    example: str = ""

    def __str__(self) -> str:
        return f"{self.count:,} {self.noun[self.count != 1]} {self.reason}"

    def repeats(self, note: str) -> bool:
        """Return True if a note of a reader has the same number and reason."""
        return note in {f"{self.count} {noun} {self.reason}" for noun in self.noun}


@dataclass(frozen=True, eq=False)
class DataSummary:
    """Records of U units, in the order of the data set.

    Args:
        record: Noun of a record.
        records: U numbers of records.
        train: U numbers of examples that a client trains on.
        test: U numbers of examples that are held out for the test.
        need: Advice for units without examples: a sentence without a full stop.
        example: Noun of an example; None for the noun of a record.
        totals: Noun, singular -> number, such as devices.
        dropped: Rows that are not used.
        remarks: Sentences about single units, which name them.
    """

    record: Nouns
    records: Ints
    train: Ints
    test: Ints
    need: str
    example: Nouns | None = None
    totals: Mapping[str, int] = field(default_factory=dict)
    dropped: tuple[Dropped, ...] = ()
    remarks: tuple[str, ...] = ()


def locate(tables: Sequence[Table], row: int) -> str:
    """Return the place of a row of several tables, counted from 0 over all of them."""
    for table in tables:
        if row < len(table):
            place = f"{table.cells.unit} {table.cells.place_of(int(table.rows[row]))}"
            return f"{table.path}, {place}" if len(tables) > 1 else place
        row -= len(table)
    return ""


def join_column(tables: Sequence[Table], name: str) -> Any:
    """Return the cells of a column of several tables, one below the other; null where a table lacks it."""
    return pyarrow.concat_arrays(
        [table.columns[name] if name in table else pyarrow.nulls(len(table), pyarrow.string()) for table in tables]
    )


def find_repeated(
    tables: Sequence[Table], names: Sequence[str], needed: Sequence[str], noun: Nouns, reason: str
) -> list[Dropped]:
    """Return the rows that repeat an earlier one in these columns.

    Args:
        tables: Tables of the data.
        names: Columns of text that rows share.
        needed: Columns without which a row does not count.
        noun: Noun of the repeated rows.
        reason: Rest of the sentence on them.
    """
    if not tables:
        return []
    columns = {name: join_column(tables, name) for name in names}
    counted: Flags = np.all([columns[name].is_valid().to_numpy(zero_copy_only=False) for name in needed], axis=0)
    rows = np.flatnonzero(counted)
    key = combine_codes(*(to_codes(column)[0][rows] for column in columns.values()))
    again = np.ones(len(rows), bool)
    again[np.unique(key, return_index=True)[1]] = False
    if not again.any():
        return []
    return [Dropped(int(again.sum()), noun, reason, locate(tables, int(rows[again.argmax()])))]


def amount(number: int, noun: Nouns) -> str:
    """Return a quantity with its noun."""
    return f"{number:,} {noun[number != 1]}"
