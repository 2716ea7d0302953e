"""Tables as typed columns, whatever the form of their file: text or Parquet."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute as pc
import pyarrow.parquet
from pyarrow import types

from client.data.tables.files import EXPANDED_LIMIT, Content, load, suffix_of
from client.data.tables.schema import (
    DEFAULT_DIALECT,
    LEAVE_EMPTY,
    LEAVE_OUT,
    PARTITION_MARK,
    CellError,
    Cells,
    Clock,
    Column,
    Dialect,
    TableSchema,
    escape,
    match_titles,
    normalize_title,
)
from client.data.tables.table import Table, cell_error, convert_distinct, to_flags, to_numbers, to_text, to_times
from client.data.tables.text import SUFFIXES, Delimited, JsonLines, is_object
from common.arrays import Flags
from common.errors import DataError
from common.text import count

BATCH = 2**12
"""Rows decoded at a time."""


@dataclass(frozen=True, eq=False)
class Parquet(Cells):
    """Parquet, of which only the columns that are needed are decoded."""

    file: Any

    @classmethod
    def of(cls, content: Content) -> "Parquet":
        """Read the names of the columns.

        Raises:
            DataError: The file is damaged.
        """
        with _decoding(content):
            file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(content.data))
            return cls(content, [name.strip() for name in file.schema_arrow.names], file)

    def take(self, places: Sequence[int]) -> list[Any]:
        """Return the columns at these places.

        Raises:
            DataError: The file is damaged, or its columns exceed `EXPANDED_LIMIT` bytes.
        """
        with _decoding(self.content):
            names = [self.file.schema_arrow.names[k] for k in places]
            batches, size = list[Any](), 0
            for batch in self.file.iter_batches(BATCH, columns=names, use_threads=False):
                batches.append(batch)
                size += batch.nbytes
                if size > EXPANDED_LIMIT:
                    raise DataError(f"expands to more than {EXPANDED_LIMIT:,} bytes; split the file", self.content.path)
            schema = batches[0].schema if batches else self.file.schema_arrow
            table = pyarrow.Table.from_batches(batches, schema)
            table.validate(full=True)
            return [table.column(name).combine_chunks() for name in names]


@contextmanager
def _decoding(content: Content) -> Iterator[None]:
    try:
        yield
    except (pyarrow.ArrowException, OSError, ValueError, KeyError) as error:
        message = f"cannot be read as Parquet ({type(error).__name__}); is the file complete?"
        raise DataError(message, content.path) from None


MOST_COLUMNS, LONGEST_CELL = 1_000, 10**6
"""Columns of a table, and bytes of a cell."""


def read_table(source: Path | Content, schema: TableSchema, dialect: Dialect = DEFAULT_DIALECT) -> Table:
    """Read the columns of a schema from a file in any form.

    Raises:
        DataError: The file is no table, lacks a column, or holds malformed cells; with the place and the cell.
    """
    content = source if isinstance(source, Content) else load(source)
    return to_table(detect_cells(content, schema, dialect), schema, dialect)


def detect_cells(content: Content, schema: TableSchema, dialect: Dialect = DEFAULT_DIALECT) -> Cells:
    """Recognise the form of a table, and its titles.

    Raises:
        DataError: It is no table.
    """
    if content.is_parquet:
        return Parquet.of(content)
    if suffix_of(content.path) in SUFFIXES or is_object(content.first_line()):
        return JsonLines.of(content)
    return Delimited.of(content, schema, dialect)


def to_table(cells: Cells, schema: TableSchema, dialect: Dialect = DEFAULT_DIALECT) -> Table:
    """Convert cells to the columns of a schema; rows without any text are skipped.

    Raises:
        DataError: A column is missing, or cells are malformed.
    """
    if len(cells.titles) > MOST_COLUMNS:
        number = count(len(cells.titles), "column")
        raise cells.header_error(f"{number}, more than {MOST_COLUMNS:,}; leave out those that the task does not read")
    places = match_titles(cells, schema, dialect)
    if not places:
        raise cells.header_error(f"none of the columns {', '.join(schema.names)}; name one with --column NAME=TITLE")
    texts = dict(zip(places, cells.take(list(places.values())), strict=True))
    filled = _filled_rows(cells, list(texts.values()), places.values())
    rows = np.flatnonzero(filled)
    if not len(rows):
        raise DataError("the file has a header but no rows", cells.content.path)
    if len(rows) < len(filled):
        texts = {name: column.filter(pyarrow.array(filled)) for name, column in texts.items()}
    titles = {name: cells.titles[k] for name, k in places.items()}
    variables = tuple(name for name in places if name not in schema.names)
    kinds = {column.name: column for column in schema.columns} | {
        name: Column(name, "number", blank="missing") for name in variables
    }
    columns, comma_separated = {}, cells.delimiter == ","
    for name, text in texts.items():
        try:
            _check_length(text)
            columns[name] = _converted(text, kinds[name], dialect, schema.clock, comma_separated)
        except CellError as error:
            if kinds[name].blank == "missing":
                error.remedy = error.remedy.replace(LEAVE_OUT, LEAVE_EMPTY)
            if name in variables and error.wrong.sum() == len(text) > 1:
                error.remedy = "leave the column out"
            raise cell_error(cells, titles[name], text, rows, error) from None
    if schema.rest == "numbers":
        _check_named(cells)
    table = Table(cells, titles, texts, columns, variables, rows, len(filled) - len(rows))
    if dialect.partition:
        table = _partitioned(table, schema.unit, dialect.partition)
    if dialect.observe:
        dialect.observe(table)
    return table


def _partitioned(table: Table, unit: str, title: str) -> Table:
    """Return a table whose units are named by the value of a column and their own name.

    Raises:
        DataError: The table has no such column, a cell of it is empty, or the task has no column of units.
    """
    cells, plain = table.cells, normalize_title(title)
    places = [k for k, other in enumerate(cells.titles) if normalize_title(other) == plain]
    if not places or not unit:
        raise cells.header_error(f"no column '{escape(title)}' for --partition; name a column of the table")
    value = to_text(cells.take(places[:1])[0].take(pyarrow.array(table.rows)))
    if value.null_count:
        wrong = ~to_flags(value.is_valid())
        raise cell_error(cells, title, value, table.rows, CellError(wrong, "", f"fill it, or {LEAVE_OUT}"))
    names_of_units = table.columns[unit] if unit in table else pyarrow.nulls(len(table), pyarrow.string())
    names = pc.binary_join_element_wise(value, names_of_units.fill_null(""), PARTITION_MARK)
    return replace(
        table,
        titles={unit: title, **table.titles},
        texts={unit: value, **table.texts},
        columns={**table.columns, unit: names},
    )


def _converted(text: Any, column: Column, dialect: Dialect, clock: Clock, comma_separated: bool) -> Any:
    """Return cells in the kind of their column.

    Raises:
        CellError: Some are of another kind, or blank where that is refused.
    """
    of_numbers = dialect.dates in ("unix", "excel") and not types.is_temporal(text.type)

    def convert(cells: Any) -> Any:
        if column.kind == "number" or of_numbers:
            cells = to_numbers(cells, dialect.decimal, comma_separated)
        return to_times(cells, dialect.dates, clock) if column.kind == "time" else cells

    values = to_text(text) if column.kind == "text" else convert_distinct(text, convert)
    if column.blank == "refuse" and values.null_count:
        raise CellError(~to_flags(values.is_valid()), "", f"fill it, or {LEAVE_OUT}")
    return values


def _check_length(text: Any) -> None:
    """Accept cells of up to `LONGEST_CELL` bytes.

    Raises:
        CellError: A cell is longer.
    """
    if types.is_string(text.type) or types.is_large_string(text.type):
        length = pc.binary_length(text)
        if (pc.max(length).as_py() or 0) > LONGEST_CELL:
            wrong = to_flags(pc.greater(length, LONGEST_CELL))
            raise CellError(wrong, f"is longer than {LONGEST_CELL:,} bytes", f"shorten it, or {LEAVE_OUT}")


def _filled_rows(cells: Cells, columns: Sequence[Any], places: Collection[int]) -> Flags:
    """Return the rows that hold any text, in the columns that are read or in others."""
    blank = np.ones(len(columns[0]), bool)
    for column in columns:
        if not blank.any():
            break
        blank &= ~_is_filled(column)
    others = [k for k in range(len(cells.titles)) if k not in places]
    if blank.any() and others:
        blank &= ~np.any([_is_filled(column) for column in cells.take(others)], axis=0)
    return ~blank


def _is_filled(column: Any) -> Flags:
    if types.is_string(column.type):
        return to_flags(pc.not_equal(pc.utf8_trim_whitespace(column), ""))
    return to_flags(column.is_valid())


def _check_named(cells: Cells) -> None:
    """Accept columns without a title if they are blank."""
    unnamed = [k for k, title in enumerate(cells.titles) if not title]
    if unnamed and np.any([_is_filled(column) for column in cells.take(unnamed)]):
        raise cells.header_error("a column has no title; name it, or leave it out")
