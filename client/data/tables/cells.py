"""Cells of a file as columns, whatever its form."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from client.data.tables.formats import Content


@dataclass(frozen=True, eq=False)
class Cells(ABC):
    """Cells of a file, as columns of Arrow.

    Args:
        content: File.
        titles: Titles of the columns.
    """

    content: Content
    titles: Sequence[str]

    unit: ClassVar[Literal["line", "row"]] = "row"
    """Noun of a row's place."""

    @property
    def header_line(self) -> int:
        """One-based line of the titles, 0 without one."""
        return 0

    @property
    def comma_separated(self) -> bool:
        """True if commas stand between cells."""
        return False

    @abstractmethod
    def take(self, places: Sequence[int]) -> list[Any]:
        """Return the columns at these places.

        Raises:
            DataError: The file is malformed.
        """

    def place_of(self, row: int) -> int:
        """Return the one-based place of a row counted from 0."""
        return row + 1
