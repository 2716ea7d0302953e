"""Cells of a file as columns, codes that stand for names, and errors about cells."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from client.data.tables.files import Content
from common.arrays import Flags, Ints
from common.errors import DataError
from common.text import count

CELL_LENGTH, TITLE_LENGTH = 40, 80
"""Characters that are shown."""
LEAVE_OUT, LEAVE_EMPTY = "leave the row out", "leave the cell empty"
"""Remedies, of which the second serves where a value may be missing."""


class CellError(Exception):
    """Cells of a column that hold no value of its kind.

    Args:
        wrong: R flags, at least one of which is true.
        problem: Predicate of the sentence about the first of them; empty if it holds no value.
        remedy: What the owner can do.
    """

    def __init__(self, wrong: Flags, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.wrong, self.problem, self.remedy = wrong, problem, remedy

    @property
    def row(self) -> int:
        """First of the rows, from 0."""
        return int(self.wrong.argmax())

    def message(self, cell: str) -> str:
        """Return the sentence about the first of the cells, which holds this text."""
        what = f"'{cell}'" if cell else "a cell" if self.problem else "empty cell"
        what += f" {self.problem}" if self.problem else " stands for a missing value" if cell else ""
        return f"{what} ({self.wrong.sum():,} of {count(len(self.wrong), 'cell')}); {self.remedy}"


def escape(text: str, limit: int = TITLE_LENGTH) -> str:
    """Escape what does not print, and cut at a number of characters."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: limit + 1])
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


NameT = TypeVar("NameT", bound=Hashable)
Codes = Ints

LARGEST = 2**62
"""Bound of combined codes; larger ones are ranked first."""


def index_names(lists: Sequence[Sequence[NameT]]) -> dict[NameT, int]:
    """Return every name of several lists -> its code, by first appearance."""
    return {name: k for k, name in enumerate(dict.fromkeys(name for names in lists for name in names))}


def recode(code: Codes, names: Sequence[NameT], index: Mapping[NameT, int]) -> Codes:
    """Return codes into `names` as codes by `index`; −1 stays: it picks the last entry."""
    return np.array([*(index[name] for name in names), -1], np.int64)[code]


def sort_unique(values: Codes) -> Codes:
    """Return values in order, each once; faster than `numpy.unique` where most are distinct."""
    ordered = np.sort(values)
    return ordered[np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))]


def combine_codes(*columns: Codes) -> Codes:
    """Return R numbers for several columns of R codes, ordered as the rows of codes are."""
    key: Codes = np.zeros(len(columns[0]), np.int64)
    for column in columns if len(key) else ():
        if _span(key) * _span(column) >= LARGEST:
            key, column = (np.unique(codes, return_inverse=True)[1].astype(np.int64) for codes in (key, column))
        low = column.min()
        key = (key - key.min()) * (column.max() - low + 1) + (column - low)
    return key


def _span(column: Codes) -> int:
    return int(column.max()) - int(column.min()) + 1


@dataclass(frozen=True, eq=False)
class Cells(ABC):
    """Cells of a file, as columns of Arrow.

    Args:
        content: File.
        titles: Titles of the columns.
        header_line: One-based line of the titles, 0 without one.
        delimiter: Character between cells, empty without one.
        lists: Title -> type of each column whose cells hold several values, such as `token_seq`.
    """

    content: Content
    titles: Sequence[str]
    header_line: int = field(default=0, kw_only=True)
    delimiter: str = field(default="", kw_only=True)
    lists: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    unit: ClassVar[Literal["line", "row"]] = "row"
    """Noun of a row's place."""

    @abstractmethod
    def take(self, places: Sequence[int]) -> list[Any]:
        """Return the columns at these places.

        Raises:
            DataError: The file is malformed.
        """

    def place_of(self, row: int) -> int:
        """Return the one-based place of a row counted from 0."""
        return row + 1

    def header_error(self, message: str, column: str = "") -> DataError:
        """Return the error about the titles."""
        return DataError(message, self.content.path, self.header_line, column)
