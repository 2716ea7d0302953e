"""The plain table of rules, which is also the published form of the Wyze data set: CSV, TSV or Parquet, one rule a row.

Other columns are ignored; blanks around names and cells are cut. A row whose `trigger_state` and `action` are both
empty holds no rule: it declares one or two devices of the user (`action_device` may be empty), so that a home's devices
without rules, and homes without rules, can be written down.
"""

import csv
import difflib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow.parquet

from client.data.tables.reader import DELIMITERS, opened, reading, suffix_of
from client.data.tables.values import private_csv
from client.tasks.rules.data.homes import Home
from client.tasks.rules.data.rows import Row
from common.errors import DataError
from common.tasks.rules.vocabulary import RuleCatalogue, relation_parts

COLUMNS = (
    "user_id",
    "trigger_device",
    "trigger_device_id",
    "trigger_state",
    "action",
    "action_device",
    "action_device_id",
)
ALIASES = {"trigger_state": "trigger_state_id", "action": "action_id"}
TABLES = (".csv", ".tsv", ".parquet")

Record = tuple[int, Sequence[str]]
"""Line number and cells."""


def read_table(path: Path) -> list[Row]:
    """All rows of one table.

    Raises:
        DataError: Missing or empty file, missing column, empty cell, or not a table at all; with line and column.
    """
    if not path.is_file():
        raise DataError("no such file", path)
    source = str(path)
    read = _parquet_records if suffix_of(path) == ".parquet" else _delimited_records
    records = (record for record in read(path) if any(record[1]))
    line, header = next(records, (0, ()))
    if not header:
        raise DataError(f"the file is empty; it needs a header with the columns {', '.join(COLUMNS)}", path)
    places = _places([name.strip() for name in header], path, line)
    rows = [_row(cells, places, len(header), source, line) for line, cells in records]
    if not rows:
        raise DataError("the file has a header but no rows", path)
    return rows


def write_table(path: Path, homes: Iterable[Home], catalogue: RuleCatalogue) -> None:
    """Write homes as CSV, readable by the owner only; `read_table` gives the same homes back, rules or no rules."""
    with private_csv(path) as writer:
        writer.writerow(COLUMNS)
        for home in homes:
            writer.writerows(_lines(home, catalogue))


def _lines(home: Home, catalogue: RuleCatalogue) -> Iterator[tuple[str, ...]]:
    names = [(catalogue.entities[device.entity], device.name) for device in home.devices]
    for trigger, action, relation in home.rules.tolist():
        yield (home.name, *names[trigger], *relation_parts(catalogue.relations[relation]), *names[action])
    for idle in sorted(set(range(len(names))) - set(home.rules[:, :2].ravel().tolist())):
        yield (home.name, *names[idle], "", "", "", "")


def _delimited_records(path: Path) -> Iterator[Record]:
    """Separated by tabs, semicolons or commas, whichever sets the users' column apart; between tabs quotes are text."""
    with opened(path, newline="") as file:
        header = next((text for text in file if text.strip()), "")
        named = (mark for mark in DELIMITERS if COLUMNS[0] in [cell.strip('" \r\n') for cell in header.split(mark)])
        delimiter = next(named, ",")
        file.seek(0)
        quotes = '"' if delimiter != "\t" else None
        reader = csv.reader(file, delimiter=delimiter, quotechar=quotes, strict=True)
        yield from ((reader.line_num, cells) for cells in reader)


def _parquet_records(path: Path) -> Iterator[Record]:
    with reading(path):
        table = pyarrow.parquet.read_table(path)
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    yield 1, table.column_names
    yield from ((index, [_text(value) for value in row]) for index, row in enumerate(rows, start=1))


def _text(value: object) -> str:
    """A Parquet cell as a CSV would show it; whole numbers that became floats are whole again."""
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _places(header: list[str], path: Path, line: int) -> list[int]:
    """Where each of `COLUMNS` stands."""
    return [header.index(_find(column, header, path, line)) for column in COLUMNS]


def _find(column: str, header: list[str], path: Path, line: int) -> str:
    for name in (column, ALIASES.get(column, column)):
        if name in header:
            return name
    closest = difflib.get_close_matches(column, [name for name in header if name not in COLUMNS], n=1)
    hint = f"; did you mean it by '{closest[0]}'?" if closest else "."
    raise DataError(f"this column is missing{hint} A table needs the columns {', '.join(COLUMNS)}", path, line, column)


def _row(cells: Sequence[str], places: list[int], width: int, path: str, line: int) -> Row:
    if len(cells) != width:
        raise DataError(f"{len(cells)} cells, but the header names {width} columns", path, line)
    user, *trigger, state, verb, action, action_id = (cells[place].strip() for place in places)
    row = Row(user, trigger[0], trigger[1], state, verb, action, action_id, path, line)
    for column, cell in zip(COLUMNS, row[: len(COLUMNS)], strict=True):
        if not cell and column in _needed(row):
            raise DataError("empty cell", path, line, column)
    return row


def _needed(row: Row) -> tuple[str, ...]:
    """The columns that must be filled: all for a rule, without state and action for declared devices."""
    if row.trigger_state or row.action:
        return COLUMNS
    return COLUMNS[:3] + (COLUMNS[5:] if row.action_device or row.action_id else ())
