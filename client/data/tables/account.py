"""Account of the rows of a source: each is kept, merged or left out for a reason."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from client.data.tables.schema import Cells, Dialect, TableSchema
from common.arrays import Flags, Ints

Nouns = tuple[str, str]
"""Singular and plural."""
ROWS = ("row", "rows")


@dataclass(frozen=True)
class Dropped:
    """Rows that are not used as they are, for one reason.

    Args:
        count: Number of them.
        noun: Noun, such as `duplicate rule`.
        reason: Rest of the sentence, such as `dropped`.
        example: Place of the first; empty if unknown.
        merged: True if their values are part of another record.
    """

    count: int
    noun: Nouns
    reason: str
    example: str = ""
    merged: bool = False

    def __str__(self) -> str:
        return f"{self.count:,} {self.noun[self.count != 1]} {self.reason}"


@dataclass(frozen=True)
class Reading:
    """Rows of a source: those read are those kept, merged and left out.

    Args:
        rows: Rows read.
        records: Rows that are a record, or declare a unit.
        dropped: The other rows, by reason.
        first: Time of the first row that is kept, in seconds from 1970; None without dates.
        last: Time of the last one.
    """

    rows: int
    records: int
    dropped: tuple[Dropped, ...]
    first: float | None = None
    last: float | None = None

    def __str__(self) -> str:
        merged = sum(one.count for one in self.dropped if one.merged)
        return f"{self.records:,} kept, {merged:,} merged, {self.rows - self.records - merged:,} left out"


def with_account(dialect: Dialect, *schemas: TableSchema) -> Dialect:
    """Return the dialect, which fits one of the schemas, with an account of rows if it has none.

    Raises:
        ConfigError: It does not fit.
    """
    dialect.check(*schemas)
    return dialect if dialect.account else replace(dialect, account=RowAccount())


@dataclass(eq=False)
class RowAccount:
    """Fates of rows while a source is read; rows are numbered over all of its files.

    Args:
        places: True to hold the files, so that the first row of each reason is named.
        notes: Remarks on columns and lines that are not read.
    """

    places: bool = False
    notes: list[str] = field(default_factory=list)
    _fates: Ints = field(default_factory=lambda: np.zeros(0, np.int16), repr=False)
    _times: list[tuple[Ints, Any]] = field(default_factory=list, repr=False)
    _files: list[tuple[int, Cells]] = field(default_factory=list, repr=False)
    _reasons: dict[tuple[Nouns, str, bool], int] = field(default_factory=dict)

    def open(self, cells: Cells | None, rows: int) -> int:
        """Begin with the rows of a file, and return the number of its first."""
        first = len(self._fates)
        self._fates = np.append(self._fates, np.zeros(rows, np.int16))
        if self.places and cells:
            self._files.append((first, cells))
        return first

    def dates(self, rows: Ints, seconds: Any) -> None:
        """Take note of the times of rows, for the range of those that are kept."""
        if self.places:
            self._times.append((rows, seconds))

    def leave(self, rows: Ints, noun: Nouns, reason: str, *, merged: bool = False) -> None:
        """Leave rows out, or merge them; those that were left out before keep their reason."""
        if len(rows) and len(rows := rows[self._fates[rows] == 0]):
            code = self._reasons.setdefault((noun, reason, merged), len(self._reasons) + 1)
            self._fates[rows] = code

    def lose(self, before: Ints, after: Ints, noun: Nouns, reason: str, *, merged: bool = False) -> None:
        """Leave out the rows of `before` that are not in `after`, one row a record or several records a row."""
        lost = np.zeros(len(self._fates), bool)
        lost[before] = True
        lost[after] = False
        self.leave(np.flatnonzero(lost), noun, reason, merged=merged)

    def close(self, records: int) -> Reading:
        """Return the account, in which the reader kept so many rows."""
        counts = np.bincount(self._fates, minlength=len(self._reasons) + 1).tolist()
        dropped = tuple(
            Dropped(counts[code], noun, reason, self._position(code), merged)
            for (noun, reason, merged), code in self._reasons.items()
            if counts[code]
        )
        assert records == counts[0], f"{records} rows are kept, but {counts[0]} have no reason to be left out"
        ends = [pair for pair in self._ends() if pair]
        first, last = (min(low for low, _ in ends), max(high for _, high in ends)) if ends else (None, None)
        return Reading(len(self._fates), records, dropped, first, last)

    def notes_of(self, reading: Reading) -> tuple[str, ...]:
        """Return the remarks, and the sentences on rows that are not used."""
        return (*dict.fromkeys(self.notes), *map(str, reading.dropped))

    @property
    def remaining(self) -> Ints:
        """Rows without a reason to be left out."""
        return np.flatnonzero(self._fates == 0)

    def _ends(self) -> list[tuple[float, float] | None]:
        found: list[tuple[float, float] | None] = []
        for rows, seconds in self._times:
            is_kept: Flags = (self._fates[rows] == 0) & ~np.isnan(seconds)
            found.append((seconds[is_kept].min(), seconds[is_kept].max()) if is_kept.any() else None)
        return found

    def _position(self, code: int) -> str:
        row = int((self._fates == code).argmax())
        if not self._files:
            return ""
        first, cells = max((one for one in self._files if one[0] <= row), key=lambda one: one[0])
        number = f"{cells.unit} {cells.place_of(row - first)}"
        return f"{cells.content.path}, {number}" if len(self._files) > 1 else number
