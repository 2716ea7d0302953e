"""Cells of a file as columns, whatever its form."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from client.data.tables.formats import Content
from common.errors import DataError


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
