"""Titles of a table, and which column of a schema each names."""

import difflib
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from client.data.tables.cell_errors import escape
from client.data.tables.schema import Column, Dialect, TableSchema
from common.errors import DataError

IGNORED = re.compile(r"[\s_\-\"'\ufeff]")
"""Characters of a title that do not count, nor does its case."""
NEAR = 0.7
"""Least similarity of a title that may be meant."""


@dataclass(frozen=True)
class Header:
    """First line of a table, or what stands for it.

    Args:
        path: File.
        line: One-based line, 0 where the file has none.
        titles: Titles of the columns.
    """

    path: str
    line: int
    titles: Sequence[str]

    def error(self, message: str, column: str = "") -> DataError:
        """Return the error about the header."""
        return DataError(message, self.path, self.line, column)


def normalize_title(title: str) -> str:
    """Return a title without case, blanks, `_`, `-`, quotes and byte-order mark."""
    return IGNORED.sub("", title.casefold())


def match_titles(header: Header, schema: TableSchema, dialect: Dialect) -> dict[str, int]:
    """Return the place of each column of a table, by name; variables come last, in the file's order.

    Raises:
        DataError: A required column is missing, or two columns bear one name.
    """
    places: dict[str, int] = {}
    for name, title in dialect.columns.items():
        places |= _place(name, _titled(header, title))
    for column in schema.columns:
        if column.name not in places:
            places |= _place(column.name, _matched(header, column, set(places.values()), dialect))
    _check_required(header, schema, places)
    if schema.rest == "numbers":
        renamed = {place: name for name, place in places.items()}
        variables = _variables(header, schema, renamed)
    else:
        variables = {}
    return {name: place for name, place in places.items() if name in schema.names} | variables


def find_names(titles: Iterable[str], schema: TableSchema, dialect: Dialect) -> set[str]:
    """Return the columns of the schema that titles name."""
    plain = {normalize_title(title) for title in titles}
    spellings = {
        column.name: {
            normalize_title(text) for text in (column.name, *column.aliases, dialect.columns.get(column.name, ""))
        }
        for column in schema.columns
    }
    return {name for name, texts in spellings.items() if not plain.isdisjoint(texts - {""})}


def _place(name: str, places: Sequence[int]) -> dict[str, int]:
    return {name: places[0]} if places else {}


def _titled(header: Header, title: str) -> list[int]:
    exact = [place for place, other in enumerate(header.titles) if other == title.strip()]
    alike = [place for place, other in enumerate(header.titles) if normalize_title(other) == normalize_title(title)]
    return exact or alike


def _matched(header: Header, column: Column, taken: set[int], dialect: Dialect) -> list[int]:
    spellings = {normalize_title(text) for text in (column.name, *column.aliases)}
    found = [k for k, title in enumerate(header.titles) if k not in taken and normalize_title(title) in spellings]
    if len(found) > 1:
        first, second = (escape(header.titles[place]) for place in found[:2])
        remedy = "rename one" if first == second else f"say --column {column.name}={_quoted(header.titles[found[0]])}"
        raise header.error(f"'{first}' and '{second}' both name the column {column.name}; {remedy}", column.name)
    if not found and column.name in dialect.columns:
        title = escape(dialect.columns[column.name])
        raise header.error(
            f"no column has the title '{title}' of --column {column.name}; {_titles(header)}", column.name
        )
    return found


def _check_required(header: Header, schema: TableSchema, places: Mapping[str, int]) -> None:
    """Refuse a table that lacks a column of the alternative it comes nearest to."""
    if any(set(names) <= places.keys() for names in schema.alternatives):
        return
    nearest = max(schema.alternatives, key=lambda names: sum(name in places for name in names) / len(names))
    name = next(name for name in nearest if name not in places)
    column = next(column for column in schema.columns if column.name == name)
    needed = ", or ".join(_listed(names) for names in schema.alternatives)
    free = {
        normalize_title(title): title for k, title in enumerate(header.titles) if k not in places.values() and title
    }
    spellings = [normalize_title(text) for text in (name, *column.aliases)]
    near = [title for text in spellings for title in difflib.get_close_matches(text, free, n=1, cutoff=NEAR)]
    if near:
        title = free[near[0]]
        remedy = f"'{escape(title)}' is near: rename it, or say --column {name}={_quoted(title)}"
    else:
        remedy = f"the table needs {needed}: rename a column, or say --column {name}=TITLE"
    raise header.error(f"no column '{name}'; {remedy}", name)


def _variables(header: Header, schema: TableSchema, renamed: Mapping[int, str]) -> dict[str, int]:
    """Return every further column that has a title, under that title or the name that the owner gave it.

    Raises:
        DataError: Two have the same name.
    """
    variables: dict[str, int] = {}
    for place, title in enumerate(header.titles):
        name = renamed.get(place, title)
        if not name or name in schema.names:
            continue
        if name in variables:
            raise header.error("two columns have this name; rename one", escape(name))
        variables[name] = place
    return variables


def _listed(names: Sequence[str]) -> str:
    return (
        " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:]))) if len(names) < 9 else f"{len(names)} columns"
    )


def _titles(header: Header) -> str:
    shown = ", ".join(escape(title) for title in header.titles[:20])
    return f"the titles are {shown}{', …' if len(header.titles) > 20 else ''}"


def _quoted(title: str) -> str:
    shown = escape(title)
    return (
        shlex.quote(shown) if re.search(r"[\"$`\\]", shown) else f'"{shown}"' if re.search(r"[^\w.-]", shown) else shown
    )
