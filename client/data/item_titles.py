"""Titles of items from RecBole's files beside the data; they stay on this machine."""

from pathlib import Path

from client.data.sources import is_demo, split_test_file
from client.data.tables.formats import files_in, stem_of
from client.data.tables.reader import read_table
from client.data.tables.schema import TableSchema
from client.lists.titles import COLUMNS, ITEM, NO_TITLES, TITLE, Titles

SUFFIX, TYPED = ".item", b":token"
"""Suffix of RecBole's files of items, and a type in their header; MovieLens 100K has another `u.item`."""

SCHEMA = TableSchema(columns=COLUMNS)


def read_titles(source: str) -> Titles:
    """Read the titles of `NAME.item` beside a file `NAME.inter`, or of all such files in a folder.

    Raises:
        DataError: Such a file is malformed.
    """
    path = split_test_file(source)[0]
    if is_demo(source) or not path.exists():
        return NO_TITLES
    name = "" if path.is_dir() else stem_of(path).partition(".")[0]
    titles: dict[str, str] = {}
    for file in files_in(path if path.is_dir() else path.parent):
        if file.suffix.lower() == SUFFIX and (not name or file.stem == name) and _is_typed(file):
            table = read_table(file, SCHEMA)
            if TITLE in table:
                pairs = zip(*(table.columns[column].to_pylist() for column in (ITEM, TITLE)), strict=True)
                titles |= {item: title for item, title in pairs if title}
    return titles


def _is_typed(path: Path) -> bool:
    with path.open("rb") as file:
        return TYPED in file.readline(4096)
