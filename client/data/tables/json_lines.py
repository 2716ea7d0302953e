"""JSON lines as columns: an object a line, whose keys are the titles."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow
import pyarrow.json

from client.data.tables.cells import Cells
from client.data.tables.formats import Content
from common.errors import DataError

SUFFIXES = (".jsonl", ".ndjson")
SAMPLE = 1_000
"""Objects whose keys are the titles, and whose values tell the types."""

TYPES = {
    frozenset(): pyarrow.string(),
    frozenset({str}): pyarrow.string(),
    frozenset({int}): pyarrow.int64(),
    frozenset({float}): pyarrow.float64(),
    frozenset({int, float}): pyarrow.float64(),
}


@dataclass(frozen=True, eq=False)
class JsonLines(Cells):
    """JSON lines.

    Args:
        types: Title -> Arrow type of its values; None if they are of several kinds.
    """

    types: dict[str, Any]

    @classmethod
    def of(cls, content: Content) -> "JsonLines":
        """Read the keys of the first objects.

        Raises:
            DataError: One of these lines is no object.
        """
        kinds: dict[str, set[type]] = {}
        for _, record in islice(_records(content), SAMPLE):
            for title, value in record.items():
                kinds.setdefault(title, set()).update({type(value)} - {type(None)})
        return cls(content, list(kinds), {title: TYPES.get(frozenset(found)) for title, found in kinds.items()})

    def take(self, places: Sequence[int]) -> list[Any]:
        """Return the columns at these places.

        Raises:
            DataError: A line is no object, or a value is an object or a list of such.
        """
        names = [self.titles[place] for place in places]
        return self._of_one_type(names) or self._of_several(names)

    def place_of(self, row: int) -> int:
        """Return the one-based line of a row counted from 0."""
        return next(islice(self.content.lines(), row, None))[0]

    def _of_one_type(self, names: Sequence[str]) -> list[Any]:
        """Return the columns, or nothing if not each line is an object with values of the expected types."""
        if any(self.types[name] is None for name in names):
            return []
        data = self.content.data
        read = pyarrow.json.ReadOptions(use_threads=False, block_size=min(len(data), 2**30))
        schema = pyarrow.schema([(name, self.types[name]) for name in names])
        parse = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        try:
            table = pyarrow.json.read_json(pyarrow.BufferReader(data), read, parse)
        except pyarrow.ArrowException:
            return []
        lines = data.count(b"\n") + (not data.endswith(b"\n"))
        return [table.column(name).combine_chunks() for name in names] if table.num_rows == lines else []

    def _of_several(self, names: Sequence[str]) -> list[Any]:
        columns: dict[str, list[str | None]] = {name: [] for name in names}
        for line, record in _records(self.content):
            for name, column in columns.items():
                try:
                    column.append(_text(record.get(name)))
                except ValueError as error:
                    raise DataError(str(error), self.content.path, line, name, unit="row") from None
        return [pyarrow.array(column, pyarrow.string()) for column in columns.values()]


def is_object(line: str) -> bool:
    """Return True if a line is a JSON object."""
    return line.startswith("{") and _object(line) is not None


def _records(content: Content) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, text in content.lines():
        record = _object(text)
        if record is None:
            remedy = 'write {"name": value, …} on a line of its own'
            raise DataError(f"not a JSON object; {remedy}", content.path, line, unit="row")
        yield line, record


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _text(value: object) -> str | None:
    """Return a value as a delimited file would show it.

    Raises:
        ValueError: It is an object, holds one, or is no text that can be written.
    """
    match value:
        case None | str():
            text = value
        case bool():
            text = str(value).lower()
        case float():
            text = str(int(value)) if value.is_integer() else repr(value)
        case int():
            text = str(value)
        case list():
            parts = [_text(part) or "" for part in value]
            if any("," in part for part in parts):
                raise ValueError("a list of texts with commas; write one row for each of them")
            text = ",".join(parts)
        case _:
            raise ValueError("an object; write its values as columns of their own")
    if text is not None and not text.isascii():
        text.encode()
    return text
