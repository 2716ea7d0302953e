"""Tables of text row by row, with the line of each: catalogues, whose cells may hold line breaks, and market tables."""

import csv
import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from client.data.tables.reader import delimiter_in, first_line, opened, suffix_of
from common.errors import DataError

csv.field_size_limit(2**24)  # descriptions may be long


@dataclass(frozen=True)
class Row:
    """One row of a table.

    Args:
        path: Its file.
        line: Its last line there, from 1.
        cells: By title, blanks around them cut.
    """

    path: Path
    line: int
    cells: dict[str, str]

    def named(self, title: str) -> str:
        """What names something: a cell that must not be empty.

        Raises:
            DataError: It is empty.
        """
        if not self.cells[title]:
            raise DataError("empty; give every row one", self.path, self.line, title)
        return self.cells[title]


def read_rows(path: Path, titles: Sequence[str] = ()) -> Iterator[Row]:
    """The rows of a delimited file, blank lines skipped; `titles` where it has no header.

    Raises:
        DataError: Empty, not in UTF-8 (with the line), or a row with another number of cells than there are titles.
    """
    _check_encoding(path)
    with opened(path) as file:
        delimiter = delimiter_of(path)
        reader = csv.reader(file, delimiter=delimiter, skipinitialspace=delimiter == " ")
        header = list(titles)
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if not header:
                header = [cell.strip() for cell in cells]
                continue
            if len(cells) != len(header):
                raise DataError(f"{len(cells)} cells, but {len(header)} columns", path, reader.line_num)
            yield Row(path, reader.line_num, {t: c.strip() for t, c in zip(header, cells, strict=True)})


def header_of(path: Path) -> list[str]:
    """Cells of the first line that is not blank.

    Raises:
        DataError: The file is empty or not in UTF-8.
    """
    _check_encoding(path)
    delimiter = delimiter_of(path)
    reader = csv.reader([first_line(path)], delimiter=delimiter, skipinitialspace=delimiter == " ")
    return [cell.strip() for cell in next(reader)]


def delimiter_of(path: Path) -> str:
    """What stands between the cells of the first line: a tab, a semicolon, a comma, or blanks in a text file."""
    return delimiter_in(first_line(path)) or (" " if suffix_of(path) == ".txt" else ",")


def _check_encoding(path: Path) -> None:
    """Say which line is not UTF-8, which the decoder of a whole file cannot."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for line, raw in enumerate(file, start=1):
                try:
                    raw.decode("utf-8")
                except UnicodeDecodeError:
                    raise DataError("not text in UTF-8; save the file as UTF-8", path, line) from None
    except OSError as error:
        raise DataError(error.strerror or "cannot be read; is it complete?", path) from None
