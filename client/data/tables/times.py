"""Cells of a column as times."""

from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
import pyarrow
import pyarrow.compute as pc
from pyarrow import types

from client.data.tables.cells import LEAVE_OUT, CellError
from client.data.tables.schema import Dates
from client.data.tables.table import PLAIN, drop_missing, match_cells, to_flags, to_text, try_cast
from common.arrays import Flags, Floats

Clock = Literal["utc", "wall"]

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
    parts = pc.extract_regex(text, SLASHED)
    large = {
        order: pc.any(pc.greater(pc.struct_field(parts, field).cast(pyarrow.int64()), 12)).as_py()
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
