"""Table of typed columns, and cells of a column as text, numbers, times and codes, by Arrow."""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute as pc
from pyarrow import types

from client.data.dataset import Dropped, Nouns
from client.data.tables.schema import (
    CELL_LENGTH,
    LEAVE_OUT,
    CellError,
    Cells,
    Clock,
    Codes,
    Dates,
    Decimal,
    combine_codes,
    escape,
)
from common.arrays import Flags, Floats, Ints
from common.errors import DataError

MISSING = ("", "na", "n/a", "nan", "null", "none", "nil", "-", "--", "?", ".", "#n/a", "#value!")
"""Cells without a value among numbers and times, in lower case."""

LONG = 10_000
"""Number of cells from which on equal texts are converted once."""

PLAIN = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
GROUPED = r"^[+-]?((\d+|\d{1,3}(MARK\d{3})+|\d{1,3}([ \x{a0}\x{202f}']\d{3})+)(POINT\d*)?|POINT\d+)([eE][+-]?\d+)?$"
"""Numbers with thousands separators: MARK, a blank or an apostrophe."""
FORMS = {
    "point": GROUPED.replace("MARK", ",").replace("POINT", r"\."),
    "comma": GROUPED.replace("MARK", r"\.").replace("POINT", ","),
}
INFINITE = r"(?i)^[+-]?inf(inity)?$"


def to_text(column: Any) -> Any:
    """Return a column as text without blanks around it, null where nothing is left.

    Floats that are all whole become whole numbers, as they were before a missing value made floats of them.

    Raises:
        CellError: The cells are records, lists of such, or bytes.
    """
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
        whole = try_cast(column, pyarrow.int64())
        column = column if whole is None else whole
    try:
        if types.is_list(column.type) or types.is_large_list(column.type):
            column = _joined(column)
        text = pc.utf8_trim_whitespace(column.cast(pyarrow.string()))
    except (pyarrow.ArrowException, TypeError):
        remedy = "write text, numbers or times, one a cell"
        raise CellError(np.ones(len(column), bool), f"is of type {column.type}", remedy) from None
    blank = pc.equal(text, "")
    return pc.if_else(blank, None, text) if pc.any(blank).as_py() else text


def to_numbers(column: Any, decimal: Decimal, comma_separated: bool) -> Any:
    """Return a column as floats, null where a value is missing.

    Args:
        column: Text or numbers.
        decimal: Decimal mark; `auto` takes a comma for it where no cell can be read otherwise.
        comma_separated: True if commas stand between cells.

    Raises:
        CellError: Cells are no finite numbers, or their decimal mark is not settled.
    """
    if types.is_integer(column.type) or types.is_float64(column.type):
        numbers = column.cast(pyarrow.float64(), safe=False)
        return _finite(pc.if_else(pc.is_nan(numbers), None, numbers), column)
    plain = try_cast(column, pyarrow.float64()) if decimal != "comma" and types.is_string(column.type) else None
    if plain is not None and pc.all(pc.is_finite(plain)).as_py() is not False:
        return plain
    text = drop_missing(to_text(column))
    plain = try_cast(text, pyarrow.float64()) if decimal != "comma" else None
    if plain is None or pc.any(pc.is_nan(plain)).as_py():
        plain = try_cast(_plain_text(text, decimal, comma_separated), pyarrow.float64())
    return _finite(plain, text)


def convert_distinct(text: Any, convert: Callable[[Any], Any]) -> Any:
    """Convert each distinct text of a long column once if there are few; otherwise every cell.

    Raises:
        CellError: Cells are refused by `convert`.
    """
    sample = text.slice(0, LONG // 10)
    if not types.is_string(text.type) or len(text) < LONG or pc.count_distinct(sample).as_py() > len(sample) // 2:
        return convert(text)
    coded = text.dictionary_encode()
    try:
        return convert(coded.dictionary).take(coded.indices)
    except CellError as error:
        wrong = np.append(error.wrong, False)[coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
        raise CellError(wrong, error.problem, error.remedy) from None


def drop_missing(text: Any) -> Any:
    """Return text with null for what stands for a missing value."""
    missing = pc.is_in(pc.utf8_lower(text), value_set=pyarrow.array(MISSING))
    return pc.if_else(missing, None, text)


def try_cast(text: Any, kind: Any) -> Any:
    """Return a column in another type; None if a cell does not allow it."""
    try:
        return text.cast(kind)
    except pyarrow.ArrowInvalid:
        return None


def to_flags(condition: Any) -> Flags:
    """Return an Arrow condition as flags, false where it is null."""
    values: Flags = condition.fill_null(False).to_numpy(zero_copy_only=False)
    return values


def match_cells(text: Any, pattern: str) -> Any:
    """Return the cells that match a pattern, null where there is none."""
    return pc.match_substring_regex(text, pattern)


def to_codes(column: Any) -> tuple[Codes, list[str]]:
    """Return codes by first appearance, −1 for null, and the texts for which they stand."""
    coded = column.dictionary_encode()
    return coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64), coded.dictionary.to_pylist()


def _plain_text(text: Any, decimal: Decimal, comma_separated: bool) -> Any:
    """Return numbers with a decimal point and no thousands separators.

    Raises:
        CellError: Cells are no numbers, or the decimal mark is not settled.
    """
    fits = {mark: pc.sum(match_cells(text, form)).as_py() or 0 for mark, form in FORMS.items()}
    commas, filled = to_flags(pc.match_substring(text, ",")), len(text) - text.null_count
    mark = decimal if decimal != "auto" else max(fits, key=lambda form: fits[form])
    if decimal == "auto" and commas.any() and min(fits.values()) == filled:
        problem = "has a decimal comma or a thousands separator"
        raise CellError(commas, problem, "say --decimal comma or --decimal point")
    if fits[mark] < filled:
        raise _no_number(text, mark)
    if decimal == "auto" and mark == "comma" and comma_separated:
        raise CellError(commas, "has a decimal comma", "say --decimal comma")
    text = pc.replace_substring_regex(text, f"[{'.' if mark == 'comma' else ','} \u00a0\u202f']", "")
    return pc.replace_substring(text, ",", ".")


def _no_number(text: Any, mark: str) -> CellError:
    wrong = to_flags(pc.invert(match_cells(text, FORMS[mark])))
    first = text[int(wrong.argmax())].as_py()
    sign = next((c for c in first if c == "%" or unicodedata.category(c) == "Sc"), "")
    if pc.match_substring_regex(first, INFINITE).as_py():
        return CellError(wrong, "is an infinite number", LEAVE_OUT)
    if sign:
        return CellError(wrong, f"has the sign {sign}", f"write numbers without {sign}")
    return CellError(wrong, "is not a number", f"write digits such as 4.5, or {LEAVE_OUT}")


def _finite(numbers: Any, column: Any) -> Any:
    """Return numbers of which none is infinite."""
    endless = to_flags(pc.is_inf(numbers))
    if endless.any():
        named = match_cells(column.cast(pyarrow.string()), INFINITE)[int(endless.argmax())].as_py()
        raise CellError(endless, "is an infinite number" if named else "is too large a number", LEAVE_OUT)
    return numbers


def _joined(column: Any) -> Any:
    """Return lists as text with commas between their parts.

    Raises:
        TypeError: A part holds a comma itself.
    """
    values = column.flatten().cast(pyarrow.string())
    if pc.any(pc.match_substring(values, ",")).as_py():
        raise TypeError("ambiguous")
    return pc.binary_join(column.cast(pyarrow.list_(pyarrow.string())), ",")


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

    def where(self, chosen: Flags) -> "Table":
        """Return the rows for which a flag is true."""
        if chosen.all():
            return self
        mask = pyarrow.array(chosen)
        texts, columns = (
            {name: column.filter(mask) for name, column in of.items()} for of in (self.texts, self.columns)
        )
        return replace(self, texts=texts, columns=columns, rows=self.rows[chosen])

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
    number = cells.place_of(int(rows[error.row]))
    path = cells.content.path
    return DataError(error.message(cell), path, number, escape(title), cell=cell, unit=cells.unit)


FIRST, LAST = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (1990, 2101))
"""Dates lie from the first to before the last."""
EXCEL_FIRST, EXCEL_LAST, EXCEL_EPOCH = 20_000, 80_000, 25_569
"""Day numbers of 1954, 2119 and 1970 in a spreadsheet."""
MILLISECONDS_FROM, MICROSECONDS_FROM = 1e11, 1e14
DAY = 86_400

ISO = r"^\d{4}-\d\d-\d\d([T ]\d\d(:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d(:?\d\d)?)?)?)?$"
OFFSET = r"(:\d\d(?:\.\d+)?)(?:Z|[+-]\d\d(?::?\d\d)?)$"
SLASHED = r"^(?P<first>\d{1,2})[/-](?P<second>\d{1,2})[/-]\d{4}\b"
SPELLINGS = (
    (r"(?i)(\d) *(?:z|utc|gmt)$", r"\1Z"),
    (r"(:\d\d) +([+-]\d)", r"\1\2"),
    (r"(\d)(?:[Tt]| +)(\d)", r"\1 \2"),
    (r"(:\d\d)[.,](\d{1,6})\d*", r"\1.\2"),
    (r"^(\d{4})[/.](\d{1,2})[/.](\d{1,2})\b", r"\1-\2-\3"),
    (r"^(\d{1,2})\.(\d{1,2})\.(\d{4})\b", r"\3-\2-\1"),
)
"""Ways to write ISO 8601, and dates between points, whose day comes first."""
ORDERS = {"dmy": r"\3-\2-\1", "mdy": r"\3-\1-\2"}
SINGLE_DIGIT = (r"(^|[-+: ])(\d)\b", r"\10\2")

EXAMPLES = {
    "unix": "Unix seconds such as 1396867869",
    "excel": "day numbers such as 41736.45",
    "dmy": "dates such as 07/04/2014 10:51",
    "mdy": "dates such as 04/07/2014 10:51",
}
EXAMPLE = "ISO 8601 such as 2014-04-07T10:51:09Z"


def to_times(column: Any, dates: Dates, clock: Clock) -> Any:
    """Return a column as seconds from 1970, floats, null where there is no time.

    Args:
        column: Text, times, or numbers.
        dates: Form of the times.
        clock: `utc`: instants; a time without an offset is in UTC. `wall`: readings of a local clock; an offset is
            dropped.

    Raises:
        CellError: Cells are no times, lie outside 1990 to 2100, or are dates in an unsettled order.
    """
    if types.is_timestamp(column.type) or types.is_date(column.type):
        return _dated(column, clock)
    if types.is_floating(column.type) or types.is_integer(column.type):
        return _numbered(column.cast(pyarrow.float64(), safe=False), dates, clock)
    stamps = (
        try_cast(column, pyarrow.timestamp("us")) if dates in ("auto", "iso") and types.is_string(column.type) else None
    )
    if stamps is not None:
        return _dated(stamps, clock)
    text = drop_missing(to_text(column))
    if dates != "auto":
        return _dated(_stamps(text, dates, clock), clock)
    numeric = pc.fill_null(match_cells(text, PLAIN), False)
    numbers = _numbered(pc.if_else(numeric, text, None).cast(pyarrow.float64()), dates, clock)
    dated = pc.if_else(numeric, None, text)
    if dated.null_count == len(dated):
        return numbers
    return pc.coalesce(numbers, _dated(_stamps(dated, dates, clock), clock))


def _stamps(text: Any, dates: Dates, clock: Clock) -> Any:
    """Return text as timestamps.

    Raises:
        CellError: Cells are no times.
    """
    if not pc.all(match_cells(text, ISO)).as_py():
        text = _respelt(text, dates)
    wrong = to_flags(pc.invert(match_cells(text, ISO)))
    zoned = pc.fill_null(match_cells(text, OFFSET), False)
    instants = try_cast(pc.if_else(zoned, text, None), pyarrow.timestamp("us", "UTC"))
    naive = pc.replace_substring_regex(text, OFFSET, r"\1") if clock == "wall" else pc.if_else(zoned, None, text)
    stamps = None if wrong.any() else try_cast(naive, pyarrow.timestamp("us"))
    if stamps is None or instants is None:
        wrong |= np.array([not _is_time(cell) for cell in text.to_pylist()], bool)
        example = EXAMPLES.get(dates, EXAMPLE)
        raise CellError(wrong, "is not a time", f"write {example}, or {LEAVE_OUT}")
    return stamps if clock == "wall" else pc.coalesce(stamps, instants.cast(pyarrow.timestamp("us")))


def _respelt(text: Any, dates: Dates) -> Any:
    """Return dates in all recognised forms as ISO 8601.

    Raises:
        CellError: It is not settled whether the day or the month comes first.
    """
    for pattern, spelling in SPELLINGS if dates != "iso" else SPELLINGS[:4]:
        text = pc.replace_substring_regex(text, pattern, spelling)
    slashed = to_flags(match_cells(text, SLASHED))
    if slashed.any() and dates != "iso":
        order = dates if dates in ORDERS else _order(text, slashed)
        pattern = r"^(\d{1,2})[/-](\d{1,2})[/-](\d{4})\b"
        text = pc.replace_substring_regex(text, pattern, ORDERS[order])
    return pc.replace_substring_regex(text, *SINGLE_DIGIT)


def _order(text: Any, slashed: Flags) -> str:
    """Return the order of day and month that the whole column allows."""
    fields = pc.extract_regex(text, SLASHED)
    large = {
        order: pc.any(pc.greater(pc.struct_field(fields, field).cast(pyarrow.int64()), 12)).as_py()
        for order, field in (("dmy", "first"), ("mdy", "second"))
    }
    if large["dmy"] == large["mdy"]:
        problem = "may begin with the day or the month" if not large["dmy"] else "stands among dates in another order"
        raise CellError(slashed, problem, "say --dates dmy or --dates mdy")
    return "dmy" if large["dmy"] else "mdy"


def _is_time(text: str | None) -> bool:
    if text is None:
        return True
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _dated(stamps: Any, clock: Clock) -> Any:
    """Return timestamps or days as seconds.

    Raises:
        CellError: Some lie outside the years of records.
    """
    if clock == "wall" and types.is_timestamp(stamps.type) and stamps.type.tz:
        stamps = pc.local_timestamp(stamps)
    micros = stamps.cast(pyarrow.timestamp("us"), safe=False).cast(pyarrow.int64())
    seconds = micros.to_numpy(zero_copy_only=False) / 1e6
    return _checked(seconds, seconds < FIRST)


def _numbered(numbers: Any, dates: Dates, clock: Clock) -> Any:
    """Return numbers as seconds; small ones are an order rather than dates, unless the clock is local.

    Raises:
        CellError: All are what a spreadsheet makes of dates, or some lie outside the years of records.
    """
    values = numbers.to_numpy(zero_copy_only=False).astype(np.float64)
    filled = ~np.isnan(values)
    if dates == "excel":
        seconds = np.round((values - EXCEL_EPOCH) * DAY, 3)
        return _checked(seconds, seconds < FIRST)
    days = filled & (values >= EXCEL_FIRST) & (values <= EXCEL_LAST)
    if dates == "auto" and days.any() and (days == filled).all():
        remedy = "say --dates excel, or --dates unix for seconds since 1970"
        first = datetime.fromtimestamp((values[days.argmax()] - EXCEL_EPOCH) * DAY, UTC)
        raise CellError(days, f"looks like an Excel date, {first:%Y-%m-%d}", remedy)
    size = np.abs(values)
    seconds = values / np.where(size > MICROSECONDS_FROM, 1e6, np.where(size > MILLISECONDS_FROM, 1e3, 1.0))
    return _checked(seconds, (seconds < FIRST) & ((size > FIRST) | (clock == "wall")))


def _checked(seconds: Floats, early: Flags) -> Any:
    wrong = early | (seconds >= LAST)
    if wrong.any():
        raise CellError(wrong, "lies outside the years 1990 to 2100", f"correct it, or {LEAVE_OUT}")
    return pyarrow.array(seconds, from_pandas=True)


def locate(tables: Sequence[Table], row: int) -> str:
    """Return the place of a row of several tables, counted from 0 over all of them."""
    for table in tables:
        if row < len(table):
            number = f"{table.cells.unit} {table.cells.place_of(int(table.rows[row]))}"
            return f"{table.path}, {number}" if len(tables) > 1 else number
        row -= len(table)
    return ""


def join_column(tables: Sequence[Table], name: str) -> Any:
    """Return the cells of a column of several tables, one below the other; null where a table lacks it."""
    return pyarrow.concat_arrays(
        [table.columns[name] if name in table else pyarrow.nulls(len(table), pyarrow.string()) for table in tables]
    )


def find_repeated(
    tables: Sequence[Table], names: Sequence[str], needed: Sequence[str], noun: Nouns, reason: str
) -> list[Dropped]:
    """Return the rows that repeat an earlier one in these columns.

    Rows without a value in one of the `needed` columns do not count. `reason` is the rest of the sentence on the others.
    """
    if not tables:
        return []
    columns = {name: join_column(tables, name) for name in names}
    counted: Flags = np.all([columns[name].is_valid().to_numpy(zero_copy_only=False) for name in needed], axis=0)
    rows = np.flatnonzero(counted)
    key = combine_codes(*(to_codes(column)[0][rows] for column in columns.values()))
    again = np.ones(len(rows), bool)
    again[np.unique(key, return_index=True)[1]] = False
    if not again.any():
        return []
    return [Dropped(int(again.sum()), noun, reason, locate(tables, int(rows[again.argmax()])))]
