"""Table of typed columns."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow

from client.data.tables.cell_errors import CELL_LENGTH, CellError, escape
from client.data.tables.cells import Cells
from client.data.tables.codes import Codes
from client.data.tables.values import to_codes
from common.arrays import Flags, Floats, Ints
from common.errors import DataError


@dataclass(frozen=True, eq=False)
class Table:
    """R rows of typed columns.

    Args:
        cells: File.
        titles: Name of each column -> its title in the file; variables come last.
        texts: Name -> cells as in the file.
        columns: Name -> Arrow array: text, floats, or times as seconds from 1970; null where blank or missing.
        variables: Names of the columns that the schema does not name.
        rows: R, the rows' places in the file, from 0.
        blank: Number of rows without any text, which were skipped.
    """

    cells: Cells
    titles: Mapping[str, str]
    texts: Mapping[str, Any]
    columns: Mapping[str, Any]
    variables: tuple[str, ...]
    rows: Ints
    blank: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    @property
    def path(self) -> Path:
        """File of the table."""
        return self.cells.content.path

    def filled(self, name: str) -> Flags:
        """Return R flags: the cells of a column that hold a value."""
        return np.asarray(self.columns[name].is_valid().to_numpy(zero_copy_only=False))

    def numbers(self, name: str) -> Floats:
        """Return R numbers or times, not-a-number where missing."""
        return np.asarray(self.columns[name].to_numpy(zero_copy_only=False), np.float64)

    def codes(self, name: str) -> tuple[Codes, list[str]]:
        """Return R codes by first appearance, −1 where blank, and the texts for which they stand."""
        return to_codes(self.columns[name])

    def where(self, kept: Flags) -> "Table":
        """Return the rows for which a flag is true."""
        if kept.all():
            return self
        mask = pyarrow.array(kept)
        texts, columns = (
            {name: column.filter(mask) for name, column in of.items()} for of in (self.texts, self.columns)
        )
        return replace(self, texts=texts, columns=columns, rows=self.rows[kept])

    def require(self, *names: str, remedy: str) -> None:
        """Accept columns without blank or missing cells.

        Raises:
            DataError: A cell holds no value.
        """
        for name in names:
            empty = ~self.filled(name)
            if empty.any():
                raise self.error(name, empty, "", remedy)

    def error(self, name: str, wrong: Flags, problem: str, remedy: str) -> DataError:
        """Return the error about cells of a column, of which the first is named; see `CellError`."""
        return cell_error(self.cells, self.titles[name], self.texts[name], self.rows, CellError(wrong, problem, remedy))


def cell_error(cells: Cells, title: str, texts: Any, rows: Ints, error: CellError) -> DataError:
    """Return the error of an owner's file: its place, the cell, how many are wrong, and the remedy."""
    try:
        text = texts.slice(error.row, 1).cast(pyarrow.string())[0].as_py() or ""
    except pyarrow.ArrowException:  # of a type without text, such as lists
        text = ""
    cell = escape(text.strip(), CELL_LENGTH)
    place = cells.place_of(int(rows[error.row]))
    path = cells.content.path
    return DataError(error.message(cell), path, place, escape(title), cell=cell, unit=cells.unit)
