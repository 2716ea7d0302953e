"""Tables of ratings, with or without a header, and JSON lines, as columns of text."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow

from client.data.tables.reader import Table, first_cells, opened, read_columns, suffix_of
from client.data.tables.values import places
from client.tasks.ratings.data.rows import ITEM, RATING, TIME, USER
from common.errors import DataError

COLUMNS = {
    USER: ("user", "userid", "reviewer", "reviewerid", "rater"),
    ITEM: ("item", "itemid", "movie", "movieid", "product", "productid", "asin"),
    RATING: ("rating", "stars", "score", "overall"),
    TIME: ("timestamp", "time", "datetime", "unixreviewtime"),
}
"""Our name of a column and how others spell it; capitals, blanks, `_` and `-` do not count."""

JSON_LINES = (".jsonl", ".ndjson")
POSITIONS = (USER, ITEM, RATING, TIME)
"""Order of the columns where a file has no header; the time may be missing."""

NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)")
NEEDED = "ratings need the columns user, item, rating and perhaps timestamp"


def read_table(path: Path) -> tuple[Table, dict[str, str]]:
    """A table in any plain form, and the titles of its columns by our names.

    Columns are separated by tabs, commas, semicolons, blanks (FilmTrust) or two colons (MovieLens 1M); a file whose third
    column begins with a number has no header.

    Raises:
        DataError: It cannot be read, a column is missing, or a row has more or fewer cells; with file and line.
    """
    if suffix_of(path) in JSON_LINES:
        table = _json_lines(path)
        return table, _places(table.titles, path)
    cells, delimiter = first_cells(path)
    if suffix_of(path) == ".parquet":
        return read_columns(path, delimiter), _places(cells, path)
    if len(cells) == 1:
        delimiter = "::" if "::" in cells[0] else " "
        cells = cells[0].split(delimiter)
    if not _headless(cells):
        if delimiter == "::":
            raise DataError(f"two colons separate nothing but numbers, as in MovieLens 1M; {NEEDED}", path, 1)
        title_of = _places(cells, path)
        return read_columns(path, delimiter), title_of
    titles = POSITIONS[: len(cells)]
    table = _two_colons(path, titles) if delimiter == "::" else read_columns(path, delimiter, titles)
    return table, {title: title for title in titles}


def _headless(cells: Sequence[str]) -> bool:
    return len(cells) in (3, 4) and bool(NUMBER.fullmatch(cells[2].strip()))


def _places(titles: Sequence[str], path: Path) -> dict[str, str]:
    """Our name of a column -> the file's."""
    found = places(titles, COLUMNS)
    missing = [name for name in (USER, ITEM, RATING) if name not in found]
    if missing:
        raise DataError(f"no column {', '.join(missing)}; {NEEDED}", path, 1)
    return found


def _two_colons(path: Path, titles: Sequence[str]) -> Table:
    with opened(path) as file:
        lines = [(number, text.rstrip("\r\n").split("::")) for number, text in enumerate(file, 1) if text.strip()]
    for number, cells in lines:
        if len(cells) != len(titles):
            raise DataError(f"{len(cells)} cells, but the first line has {len(titles)}", path, number)
    columns = [pyarrow.array([cell.strip() for cell in column]) for column in zip(*(c for _, c in lines), strict=True)]
    return Table(path, titles, columns, headed=False)


def _json_lines(path: Path) -> Table:
    """One object a line; the columns are the keys of the first."""
    records = []
    with opened(path) as file:
        for number, text in enumerate(file, 1):
            if text.strip():
                records.append(_record(text, path, number))
    if not records:
        raise DataError("the file is empty; write one JSON object a line", path)
    titles = list(records[0])
    columns = [pyarrow.array([_text(record.get(title)) for record in records]) for title in titles]
    return Table(path, titles, columns, headed=False)


def _record(text: str, path: Path, line: int) -> dict[str, object]:
    try:
        record = json.loads(text)
    except json.JSONDecodeError:
        record = None
    if not isinstance(record, dict):
        raise DataError('not a JSON object; write {"user": "ann", "item": "tea", "rating": 4}', path, line)
    return record


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()
