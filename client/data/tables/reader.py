"""Tables of text: delimited files with or without a header, gzipped or not, and Parquet, as columns of strings."""

import csv
import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from common.errors import DataError

DELIMITERS = ("\t", ";", ",")


@dataclass(frozen=True, eq=False)
class Table:
    """R rows of text.

    Args:
        path: Where it was read.
        titles: Names of the columns as the file spells them.
        columns: One Arrow array of R strings per title, blanks around them cut, missing ones empty.
        headed: Whether the file's first line is its header.
        rows: R, the rows' places in the file, from 0; without it they are all there.
    """

    path: Path
    titles: Sequence[str]
    columns: Sequence[Any]
    headed: bool = True
    rows: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.columns[0])

    def column(self, title: str) -> Any:
        """The R strings under a title."""
        return self.columns[self.titles.index(title)]

    def filled(self, title: str) -> NDArray[np.bool_]:
        """R, whether a cell holds anything."""
        filled: NDArray[np.bool_] = pyarrow.compute.not_equal(self.column(title), "").to_numpy(zero_copy_only=False)
        return filled

    def where(self, kept: NDArray[np.bool_]) -> "Table":
        """The rows for which `kept`, R, is true."""
        rows = np.flatnonzero(kept)
        columns = [column.take(pyarrow.array(rows)) for column in self.columns]
        return replace(self, columns=columns, rows=rows if self.rows is None else self.rows[rows])

    def error(self, row: int, title: str, message: str) -> DataError:
        """What to raise about one cell, row counted from 0."""
        place = row if self.rows is None else int(self.rows[row])
        return DataError(message, self.path, line_of(self.path, place, self.headed), title)


def plain_name(path: Path) -> str:
    """Name in lower case and without `.gz`."""
    return path.name.lower().removesuffix(".gz")


def suffix_of(path: Path) -> str:
    """The suffix that tells the form, in lower case: `.csv` of both `a.CSV` and `a.csv.gz`."""
    return (Path(path.stem).suffix if path.suffix == ".gz" else path.suffix).lower()


def tables_in(folder: Path, suffixes: Sequence[str]) -> list[Path]:
    """The files of a folder that are of one of these forms, by name."""
    return [path for path in sorted(folder.iterdir()) if path.is_file() and suffix_of(path) in suffixes]


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what can go wrong with a file into a `DataError` that quotes nothing of it."""
    try:
        yield
    except UnicodeDecodeError:
        raise DataError("not text in UTF-8; save it as CSV or text in UTF-8", path) from None
    except OSError as error:
        raise DataError(error.strerror or "cannot be read; is it complete?", path) from None
    except (EOFError, zlib.error, csv.Error, pyarrow.ArrowException) as error:
        raise DataError(f"cannot be read as {suffix_of(path) or 'text'} ({type(error).__name__})", path) from None


@contextmanager
def opened(path: Path, newline: str | None = None) -> Iterator[TextIO]:
    """A text file, plain or gzipped; `newline` as of `open`."""
    with (
        reading(path),
        gzip.open(path, "rt", encoding="utf-8-sig", newline=newline)
        if path.suffix == ".gz"
        else path.open(encoding="utf-8-sig", newline=newline) as file,
    ):
        yield file


def first_cells(path: Path) -> tuple[list[str], str]:
    """Cells of the first line that is not blank, and the delimiter between them, empty if there is just one cell.

    Raises:
        DataError: The file is empty or cannot be read.
    """
    if suffix_of(path) == ".parquet":
        with reading(path):
            return list(pyarrow.parquet.read_schema(path).names), ","
    line = first_line(path)
    delimiter = delimiter_in(line)
    cells = line.split(delimiter) if delimiter == "\t" else next(csv.reader([line], delimiter=delimiter or ","))
    return [cell.strip() for cell in cells], delimiter


def first_line(path: Path) -> str:
    """The first line that is not blank.

    Raises:
        DataError: The file is empty or cannot be read.
    """
    with opened(path) as file:
        line = next((text for text in file if text.strip()), "").strip("\r\n")
    if not line:
        raise DataError("the file is empty", path)
    return line


def delimiter_in(line: str) -> str:
    """What stands between the cells of a line: a tab, a semicolon or a comma; empty if none of them."""
    return next((mark for mark in DELIMITERS if mark in line), "")


def read_columns(path: Path, delimiter: str, titles: Sequence[str] = ()) -> Table:
    """A whole table; `titles` where the file has no header.

    Raises:
        DataError: A row has more or fewer cells than the header (with its line), no rows, or not a table at all.
    """
    with reading(path):
        table = (
            pyarrow.parquet.read_table(path) if suffix_of(path) == ".parquet" else _delimited(path, delimiter, titles)
        )
    if not table.num_rows:
        raise DataError("the file has a header but no rows", path)
    texts = [pyarrow.compute.utf8_trim_whitespace(_texts(column)) for column in table.columns]
    return Table(path, [title.strip() for title in table.column_names], texts, headed=not titles)


def line_of(path: Path, row: int, headed: bool) -> int:
    """One-based line of a row counted from 0, blank lines not being rows; of Parquet the row itself, from 1."""
    if suffix_of(path) == ".parquet":
        return row + 1
    with opened(path) as file:
        filled = (line for line, text in enumerate(file, start=1) if text.strip("\r\n"))
        return next(islice(filled, row + headed, None))


def _delimited(path: Path, delimiter: str, titles: Sequence[str]) -> Any:
    ragged: list[Any] = []

    def remember(row: Any) -> str:
        ragged.append(row)
        return "error"

    header = list(titles) or first_cells(path)[0]
    parsing = pyarrow.csv.ParseOptions(
        delimiter=delimiter or ",", quote_char=False if delimiter == "\t" else '"', invalid_row_handler=remember
    )
    options = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(header, pyarrow.string()), strings_can_be_null=False
    )
    plan = pyarrow.csv.ReadOptions(column_names=list(titles) or None, use_threads=False)
    try:
        return pyarrow.csv.read_csv(str(path), read_options=plan, parse_options=parsing, convert_options=options)
    except pyarrow.ArrowInvalid:
        if not ragged:
            raise
        row = ragged[0]
        message = f"{row.actual_columns} cells, but the first line has {row.expected_columns}"
        raise DataError(message, path, line_of(path, row.number - 1, headed=False)) from None


def _texts(column: Any) -> Any:
    """A column as a CSV would show it; whole numbers that became floats are whole again."""
    if pyarrow.types.is_floating(column.type):
        whole = pyarrow.compute.equal(column, pyarrow.compute.floor(column))
        if pyarrow.compute.all(whole).as_py():
            column = column.cast(pyarrow.int64())
    return column.cast(pyarrow.string()).fill_null("").combine_chunks()
