"""Cells of a table: as codes, numbers and times, or an error that names the first that is none; and written, in private."""

import csv
import math
from _csv import Writer  # csv itself names no type of it
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray

from client.data.tables.reader import Table

Codes = NDArray[np.int64]

EMPTY = ("", "nan", "na", "null", "none")
"""How tables write that a reading is missing, in lower case."""

NUMBER = r"^-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
INFINITE = r"^[+-]?inf(inity)?$"

MILLISECONDS_FROM = 1e11
"""Numbers beyond this are milliseconds: as seconds they would lie in the year 5138."""


def places(titles: Sequence[str], columns: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Our name of a column -> the file's, for those it has; of two spellings the first in the file.

    Args:
        titles: As the file spells them.
        columns: Our name -> how others spell it, plainly.
    """
    plain = {plainly(title): title for title in reversed(titles)}
    found = {name: next((plain[s] for s in spellings if s in plain), "") for name, spellings in columns.items()}
    return {name: title for name, title in found.items() if title}


def plainly(title: str) -> str:
    """A column's name without what does not count: capitals, blanks, `_` and `-`."""
    return title.lower().translate(str.maketrans("", "", " _-"))


def codes(column: Any) -> tuple[Codes, list[str]]:
    """Codes by first appearance, R, and the texts that they stand for; `column` is an Arrow array of R strings."""
    coded = column.dictionary_encode()
    return coded.indices.to_numpy(zero_copy_only=False).astype(np.int64), coded.dictionary.to_pylist()


def union(lists: Sequence[Sequence[str]]) -> dict[str, int]:
    """Every name of several lists -> its code, by first appearance."""
    return {name: k for k, name in enumerate(dict.fromkeys(name for names in lists for name in names))}


def recoded(code: Codes, names: Sequence[str], index: Mapping[str, int]) -> Codes:
    """Codes into `names` as codes by `index`; −1, which is no name's, stays: it picks the last entry."""
    return np.array([*(index[name] for name in names), -1], np.int64)[code]


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


def times(table: Table, title: str) -> NDArray[np.float64]:
    """A column as times, R, in Unix seconds.

    Raises:
        DataError: A cell holds no time, with file, line and column.
    """
    seconds = np.empty(len(table.column(title)))
    for row, text in enumerate(table.column(title).to_pylist()):
        try:
            seconds[row] = unix_seconds(text)
        except ValueError:
            message = "not a time; write Unix seconds, milliseconds, or ISO 8601 such as 2014-04-07T10:51:09Z"
            raise table.error(row, title, message) from None
    return seconds


def unix_seconds(text: str) -> float:
    """A time written as Unix seconds, Unix milliseconds or ISO 8601, the latter in UTC unless it says otherwise.

    Raises:
        ValueError: None of these.
    """
    try:
        number = float(text)
    except ValueError:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not math.isfinite(number):
        raise ValueError("not a finite number")
    return number / 1000 if abs(number) > MILLISECONDS_FROM else number


@contextmanager
def private_csv(path: Path) -> Iterator[Writer]:
    """What writes a CSV that only its owner may read, also in place of one that others could."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    with path.open("w", newline="", encoding="utf-8") as file:
        yield csv.writer(file, lineterminator="\n")


def _first_false(flags: Any) -> int | None:
    wrong = ~flags.to_numpy(zero_copy_only=False)
    return int(wrong.argmax()) if wrong.any() else None
