"""Errors about cells: their text made printable, how many are wrong, and what to do."""

import numpy as np
from numpy.typing import NDArray

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

    def __init__(self, wrong: NDArray[np.bool_], problem: str, remedy: str) -> None:
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
