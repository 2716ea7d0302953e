"""Tables as typed columns, whatever the form of their file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from client.data.tables.cell_errors import CELL_LENGTH, WrongCells, printable
from client.data.tables.cells import Cells
from client.data.tables.delimited import Delimited
from client.data.tables.formats import Content, load, suffix_of
from client.data.tables.json_lines import SUFFIXES, JsonLines, is_object
from client.data.tables.parquet import Parquet
from client.data.tables.schema import Column, Dialect, TableSchema
from client.data.tables.times import Clock, to_times
from client.data.tables.titles import Header, match_titles
from client.data.tables.values import Codes, Flags, codes, flags, to_numbers, to_text
from common.errors import DataError

RECOGNISED = Dialect()
"""Files as they are recognised without being told."""


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
    """

    cells: Cells
    titles: Mapping[str, str]
    texts: Mapping[str, Any]
    columns: Mapping[str, Any]
    variables: tuple[str, ...]
    rows: NDArray[np.int64]

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

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return R numbers or times, not-a-number where missing."""
        return np.asarray(self.columns[name].to_numpy(zero_copy_only=False), np.float64)

    def codes(self, name: str) -> tuple[Codes, list[str]]:
        """Return R codes by first appearance, −1 where blank, and the texts for which they stand."""
        return codes(self.columns[name])

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
        """Return the error about cells of a column, of which the first is named; see `WrongCells`."""
        return _error(self.cells, self.titles[name], self.texts[name], self.rows, WrongCells(wrong, problem, remedy))


def read_table(source: Path | Content, schema: TableSchema, dialect: Dialect = RECOGNISED) -> Table:
    """Read the columns of a schema from a file in any form.

    Raises:
        DataError: The file is no table, lacks a column, or holds malformed cells; with the place and the cell.
    """
    content = source if isinstance(source, Content) else load(source)
    return typed(cells_of(content, schema, dialect), schema, dialect)


def cells_of(content: Content, schema: TableSchema, dialect: Dialect = RECOGNISED) -> Cells:
    """Recognise the form of a table, and its titles.

    Raises:
        DataError: It is no table.
    """
    if content.is_parquet:
        return Parquet.of(content)
    if suffix_of(content.path) in SUFFIXES or is_object(content.first_line()):
        return JsonLines.of(content)
    return Delimited.of(content, schema, dialect)


def typed(cells: Cells, schema: TableSchema, dialect: Dialect = RECOGNISED) -> Table:
    """Convert cells to the columns of a schema; rows without any text are skipped.

    Raises:
        DataError: A column is missing, or cells are malformed.
    """
    header = Header(str(cells.content.path), cells.header_line, cells.titles)
    places = match_titles(header, schema, dialect)
    texts = dict(zip(places, cells.take(list(places.values())), strict=True))
    filled = _filled_rows(cells, list(texts.values()), places)
    rows = np.flatnonzero(filled)
    if not len(rows):
        raise DataError("the file has a header but no rows", header.path)
    if len(rows) < len(filled):
        texts = {name: column.filter(pyarrow.array(filled)) for name, column in texts.items()}
    titles = {name: cells.titles[place] for name, place in places.items()}
    variables = tuple(name for name in places if name not in schema.names)
    kinds = {column.name: column for column in schema.columns} | {name: _variable(name) for name in variables}
    columns = {}
    for name, text in texts.items():
        try:
            columns[name] = _converted(text, kinds[name], dialect, schema.clock, cells.comma_separated)
        except WrongCells as error:
            if name in variables and error.wrong.sum() == len(text) - text.null_count:
                error.remedy = "leave the column out"
            raise _error(cells, titles[name], text, rows, error) from None
    if schema.rest == "numbers":
        _check_named(cells, header)
    return Table(cells, titles, texts, columns, variables, rows)


def _variable(name: str) -> Column:
    return Column(name, "number", blank="missing")


def _converted(text: Any, column: Column, dialect: Dialect, clock: Clock, comma_separated: bool) -> Any:
    """Return cells in the kind of their column.

    Raises:
        WrongCells: Some are of another kind, or blank where that is refused.
    """
    if column.kind == "text":
        values = to_text(text)
    else:
        as_numbers = column.kind == "number" or dialect.dates in ("unix", "excel")
        if as_numbers and not types.is_temporal(text.type):
            text = to_numbers(text, dialect.decimal, comma_separated)
        values = text if column.kind == "number" else to_times(text, dialect.dates, clock)
    if column.blank == "refuse" and values.null_count:
        raise WrongCells(~flags(values.is_valid()), "", "fill it, or leave the row out")
    return values


def _filled_rows(cells: Cells, columns: Sequence[Any], places: Mapping[str, int]) -> Flags:
    """Return which rows hold any text at all, in the columns that are read or in others."""
    blank = np.ones(len(columns[0]), bool)
    others = (cells.take([place])[0] for place in range(len(cells.titles)) if place not in places.values())
    for column in chain(columns, others):
        blank &= ~flags(_is_filled(column))
        if not blank.any():
            break
    return ~blank


def _is_filled(column: Any) -> Any:
    if types.is_string(column.type):
        return pc.not_equal(pc.utf8_trim_whitespace(column), "")
    return column.is_valid()


def _check_named(cells: Cells, header: Header) -> None:
    """Accept columns without a title if they are blank."""
    for place, title in enumerate(cells.titles):
        if not title and flags(_is_filled(cells.take([place])[0])).any():
            raise header.error("a column has no title; name it, or leave it out")


def _error(cells: Cells, title: str, texts: Any, rows: NDArray[np.int64], error: WrongCells) -> DataError:
    """Return the error of an owner's file: its place, the cell, how many are wrong, and the remedy."""
    value = texts[error.row].as_py()
    cell = printable("" if value is None else str(value).strip(), CELL_LENGTH)
    place = cells.place_of(int(rows[error.row]))
    path = cells.content.path
    return DataError(error.message(cell), path, place, printable(title), cell=cell, unit=cells.unit)
