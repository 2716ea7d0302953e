"""Forms of a table that its reader recognized, for its owner."""

from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np
import pyarrow
import pyarrow.compute as pc
from pyarrow import types

from client.data.dataset import Nouns
from client.data.tables.schema import CELL_LENGTH, TableSchema, escape, normalize_title
from client.data.tables.table import (
    DAY,
    EXCEL_EPOCH,
    FIRST,
    MICROSECONDS_FROM,
    MILLISECONDS_FROM,
    SLASHED,
    Table,
    match_cells,
    to_flags,
)


def amount(number: int, noun: Nouns) -> str:
    """Return a quantity with its noun."""
    return f"{number:,} {noun[number != 1]}"


SEPARATORS = {"\t": "tab", " ": "blank", "\x1f": "::"}
"""Names of delimiters that do not print as themselves."""

ISO_DATES = "ISO 8601"


def separator_of(table: Table) -> str:
    """Return the name of the character between cells, empty if the form has none."""
    mark = table.cells.delimiter
    return SEPARATORS.get(mark, mark)


def aliases_of(table: Table) -> dict[str, str]:
    """Return title -> name of each column whose title is spelt otherwise."""
    return {
        escape(title): name for name, title in table.titles.items() if normalize_title(title) != normalize_title(name)
    }


def ignored_columns(table: Table) -> list[str]:
    """Return the titles of the columns that are not read."""
    titles = set(table.titles.values())
    return [escape(title) for title in table.cells.titles if title not in titles and title]


def decisions(table: Table, schema: TableSchema) -> Iterator[str]:
    """Yield the decimal marks and the forms of dates of a table's columns."""
    kinds = {column.name: column.kind for column in schema.columns}
    for name, title in table.titles.items():
        kind, titled = kinds.get(name, "number"), f"column '{escape(title)}'"
        decision = _number_form(table, name) if kind == "number" else _time_form(table, name) if kind == "time" else ""
        if decision:
            yield f"{titled}: {decision}"


def time_range(table: Table, schema: TableSchema) -> tuple[float, float] | None:
    """Return the first and the last date of a table in seconds from 1970; None without dates."""
    names = [column.name for column in schema.columns if column.kind == "time" and column.name in table]
    found = [pc.min_max(table.columns[name]).as_py() for name in names]
    ends = [(one["min"], one["max"]) for one in found if one["min"] is not None and one["max"] >= FIRST]
    return ends[0] if ends else None


def iso(seconds: float) -> str:
    """Return a time as ISO 8601 in UTC, without a clock time at midnight."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%d}" if seconds % DAY == 0 else f"{moment:%Y-%m-%d %H:%M:%S}"


def _number_form(table: Table, name: str) -> str:
    """Return the decimal mark of a column with commas."""
    text = table.texts[name]
    if not types.is_string(text.type):
        return ""
    commas = to_flags(pc.match_substring(text, ","))
    if not commas.any():
        return ""
    row = int(commas.argmax())
    cell, value = text[row].as_py().strip(), table.columns[name][row].as_py()
    mark = "comma" if value == _as_comma(cell) else "point"
    return f"decimal {mark} ('{escape(cell, CELL_LENGTH)}' is {value:.12g})"


def _as_comma(cell: str) -> float | None:
    try:
        return float(cell.replace(".", "").replace(" ", "").replace(",", "."))
    except ValueError:
        return None


def _time_form(table: Table, name: str) -> str:
    """Return the form of a column of times, with the first cell and its value."""
    text, seconds = table.texts[name], table.columns[name]
    if types.is_temporal(text.type):
        return ""
    there = to_flags(seconds.is_valid())
    if not there.any():
        return ""
    slashed = to_flags(match_cells(text, SLASHED)) & there if types.is_string(text.type) else np.zeros(1, bool)
    row = int((slashed if slashed.any() else there).argmax())
    cell, value = str(text[row].as_py()).strip(), seconds[row].as_py()
    form = _form_of(cell, value)
    if slashed.any():
        is_day = datetime.fromtimestamp(value, UTC).day == int(cell.replace("-", "/").partition("/")[0])
        form = "day before month" if is_day else "month before day"
    if form == ISO_DATES:
        return form
    return f"{form} ('{escape(cell, CELL_LENGTH)}' is {iso(value)})" if value >= FIRST else f"{form}"


def _form_of(cell: str, value: float) -> str:
    """Return the form of a cell that is no date between slashes."""
    number = _number(cell)
    if number is None:
        return ISO_DATES if cell[:4].isdecimal() else "day before month"
    if value < FIRST:
        return "numbers that give the order of rows"
    if abs((number - EXCEL_EPOCH) * DAY - value) < 1:
        return "Excel dates"
    size = "micro" if number > MICROSECONDS_FROM else "milli" if number > MILLISECONDS_FROM else ""
    return f"Unix {size}seconds"


def _number(cell: str) -> float | None:
    try:
        return float(pyarrow.scalar(cell).cast(pyarrow.float64()).as_py())
    except pyarrow.ArrowInvalid:
        return None
