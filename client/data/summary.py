"""Forms of a table that its reader recognized, for its owner."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np
import pyarrow
from pyarrow import types

from client.data.tables.account import Nouns
from client.data.tables.schema import CELL_LENGTH, TableSchema, escape, normalize_title
from client.data.tables.table import Table, match_cells, sign_of, to_flags
from client.data.tables.times import COMPACT, DAY, EXCEL_EPOCH, FIRST, HALF_DAY, SLASHED, SPAN, UNITS, of_compact


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
        escape(title): name
        for name, title in table.titles.items()
        if title and normalize_title(title) != normalize_title(name)
    }


def ignored_columns(table: Table) -> list[str]:
    """Return the titles of the columns that are not read."""
    titles = {part for title in table.titles.values() for part in (title, *title.split("+"))}
    return [escape(title) for title in table.cells.titles if title not in titles and title]


def decisions(table: Table, schema: TableSchema) -> Iterator[str]:
    """Yield the decimal marks and the forms of dates of a table's columns."""
    kinds = {column.name: column.kind for column in schema.columns}
    for name, title in table.titles.items():
        kind, titled = kinds.get(name, "number"), f"column '{escape(title)}'"
        decision = _number_form(table, name) if kind == "number" else _time_form(table, name) if kind == "time" else ""
        if decision:
            yield f"{titled}: {decision}"


def iso(seconds: float) -> str:
    """Return a time as ISO 8601 in UTC, without a clock time at midnight."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%d}" if seconds % DAY == 0 else f"{moment:%Y-%m-%d %H:%M:%S}"


def _number_form(table: Table, name: str) -> str:
    """Return the decimal mark of a column with commas, or the sign or unit that its cells have."""
    text = table.texts[name]
    if not types.is_string(text.type):
        return ""
    commas = to_flags(match_cells(text, r"[,%\p{Sc}/°]|\d\s*(\p{L}$|\p{L}{2})")) & table.filled(name)
    if not commas.any():
        return ""
    row = int(commas.argmax())
    if len({sign_of(cell) for cell in text.unique().drop_null().to_pylist()[:100]} - {""}) > 1:  # units with prefixes
        row = int(np.nanargmax(np.where(commas, table.numbers(name), np.nan)))
    cell, value = text[row].as_py().strip(), table.columns[name][row].as_py()
    sign = sign_of(cell)
    mark = "comma" if value == _as_comma(cell.replace(sign, "")) else "point"
    return f"{f'without {sign}' if sign else f'decimal {mark}'} ('{escape(cell, CELL_LENGTH)}' is {value:.12g})"


def _as_comma(cell: str) -> float | None:
    try:
        return float(re.sub(r"[.\s]", "", cell).replace(",", "."))
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
    rows = np.flatnonzero(slashed if slashed.any() else there)
    clear = (k for k in rows.tolist() if len({*map(int, re.findall(r"\d+", str(text[k]))[:2])}) > 1)
    row = next(clear, int(rows[0])) if slashed.any() else int(rows[0])
    cell, value = str(text[row].as_py()).strip(), seconds[row].as_py()
    form = _form_of(cell, value)
    if slashed.any():
        first, second, _ = map(int, re.findall(r"\d+", cell)[:3])
        order = {"day before month": f"{first}/{second}", "month before day": f"{second}/{first}"}
        moment = datetime.fromtimestamp(value, UTC)
        form = next((form for form, day in order.items() if day == f"{moment:%-d/%-m}"), "year before month")
    if form == ISO_DATES:
        return form
    return f"{form} ('{escape(cell, CELL_LENGTH)}' is {iso(value)})" if value >= FIRST else f"{form}"


def _form_of(cell: str, value: float) -> str:
    """Return the form of a cell that is no date between slashes."""
    number = _number(cell)
    if number is None:
        forms = {
            "the begin of a span": SPAN,
            "the Monday of an ISO week": r"^\d{4}-?W\d\d$",
            "times of a named zone": r"[A-Za-z]/[A-Z]",
            "names of months": r"\d.*[A-Za-z]{3}|[A-Za-z]{3}.*\d",
            "a 12-hour clock": HALF_DAY,
            ISO_DATES: r"^\d{4}",
        }
        return next((form for form, pattern in forms.items() if re.search(pattern, cell)), "day before month")
    if value < FIRST:
        return "numbers that give the order of rows"
    if abs((number - EXCEL_EPOCH) * DAY - value) < 1:
        return "Excel dates"
    if of_compact(np.array([number]))[0] == value:
        return f"dates as {COMPACT[len(cell.partition('.')[0])]}"
    return f"Unix {next((unit for unit, (least, _) in UNITS.items() if number > least), '')}seconds"


def _number(cell: str) -> float | None:
    try:
        return float(pyarrow.scalar(cell).cast(pyarrow.float64()).as_py())
    except pyarrow.ArrowInvalid:
        return None
