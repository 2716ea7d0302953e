"""Times as sensors write them, by their own clock."""

import re

import numpy as np
import pyarrow.compute
from numpy.typing import NDArray

from client.data.tables.reader import Table

TIME = r"^\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d)?)?$"

PLAINLY = (
    (r"(\d)[Tt](\d)", r"\1 \2"),
    (r"(:\d\d)(?:[.,]\d+)?\s*(?:[Zz]|[+-]\d\d:?\d\d)?$", r"\1"),
    (r"\b(\d)\b", r"0\1"),
)
"""A space before the clock, no parts of seconds, no offset from UTC (a sensor's own clock counts), two digits each."""
DAY_FIRST = (r"^(\d\d)/(\d\d)/(\d{4})", r"\3-\2-\1")


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


def _is_time(text: str) -> bool:
    if not re.match(TIME, text):
        return False
    try:
        np.datetime64(text, "s")
    except ValueError:
        return False
    return True
