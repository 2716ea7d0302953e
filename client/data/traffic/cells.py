"""Cells of a table as times and numbers, or an error that names the first cell that is neither."""

import re
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray

from client.data.columns import Table

EMPTY = ("", "nan", "na", "null", "none")
"""How tables write that a reading is missing, in lower case."""

NUMBER = r"^-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
INFINITE = r"^[+-]?inf(inity)?$"
TIME = r"^\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d)?)?$"

PLAINLY = (
    (r"(\d)[Tt](\d)", r"\1 \2"),
    (r"(:\d\d)(?:[.,]\d+)?\s*(?:[Zz]|[+-]\d\d:?\d\d)?$", r"\1"),
    (r"\b(\d)\b", r"0\1"),
)
"""A space before the clock, no parts of seconds, no offset from UTC (a sensor's own clock counts), two digits each."""
DAY_FIRST = (r"^(\d\d)/(\d\d)/(\d{4})", r"\3-\2-\1")


def numbers(table: Table, title: str) -> NDArray[np.float64]:
    """A column as numbers, R, not-a-number where the cell is empty.

    Raises:
        DataError: A cell is not a finite number (with line and column).
    """
    texts = table.column(title)
    missing = pyarrow.compute.is_in(pyarrow.compute.utf8_lower(texts), value_set=pyarrow.array(EMPTY))
    number = pyarrow.compute.or_(missing, pyarrow.compute.match_substring_regex(texts, NUMBER))
    wrong = _first_false(number)
    if wrong is not None:
        endless = pyarrow.compute.match_substring_regex(texts, INFINITE, ignore_case=True)[wrong].as_py()
        raise table.error(
            wrong, title, f"{'an infinite' if endless else 'not a'} number; leave the cell empty if there is none"
        )
    filled = pyarrow.compute.if_else(missing, "nan", texts)
    values: NDArray[np.float64] = filled.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
    if np.isinf(values).any():
        raise table.error(int(np.isinf(values).argmax()), title, "too large a number")
    return values


def times(table: Table, title: str, day_first: bool = False) -> NDArray[np.int64]:
    """A column as times by the sensor's own clock, R, in seconds from 1970; an offset from UTC is dropped.

    Args:
        table: R rows.
        title: The column, such as `2024-05-31 13:00`.
        day_first: It says `31/05/2024 13:00`.

    Raises:
        DataError: A cell is not such a time (with line and column).
    """
    coded = table.column(title).dictionary_encode()
    place = coded.indices.to_numpy(zero_copy_only=False)
    plain = coded.dictionary
    for pattern, text in (*PLAINLY, DAY_FIRST) if day_first else PLAINLY:
        plain = pyarrow.compute.replace_substring_regex(plain, pattern, text)
    wrong = np.array([not _is_time(text) for text in plain.to_pylist()])[place]
    if wrong.any():
        example = "31/05/2024 13:00" if day_first else "2024-05-31 13:00"
        raise table.error(int(wrong.argmax()), title, f"not a time; write it as {example}")
    distinct = np.array(plain.to_pylist(), "datetime64[s]").astype(np.int64)
    return np.asarray(distinct[place])


def codes(column: Any) -> tuple[NDArray[np.int64], list[str]]:
    """Codes by first appearance, R, and the texts that they stand for."""
    coded = column.dictionary_encode()
    return coded.indices.to_numpy(zero_copy_only=False).astype(np.int64), coded.dictionary.to_pylist()


def _first_false(flags: Any) -> int | None:
    wrong = ~flags.to_numpy(zero_copy_only=False)
    return int(wrong.argmax()) if wrong.any() else None


def _is_time(text: str) -> bool:
    if not re.match(TIME, text):
        return False
    try:
        np.datetime64(text, "s")
    except ValueError:
        return False
    return True
