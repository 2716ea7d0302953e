"""Every form of file against the schema of every task: equal data, and errors that say where, what and how many."""

from pathlib import Path

import pytest

from client.data.dataset import Source
from client.data.tables.reader import read_table
from client.data.tables.schema import TableSchema
from client.data.tables.table import Table
from client.tasks.registry import CLIENT_TASKS
from common.errors import DataError, public_reason
from tests.support.digests import digest
from tests.support.tables import FORMS, TABLES, write

WRONG = {"rules": ("trigger_device", "", ""), "sessions": ("timestamp", "noon", "'noon' is not a time")}
WRONG |= {
    "traffic": ("volume", "many", "'many' is not a number"),
    "ratings": ("rating", "four", "'four' is not a number"),
}
WRONG |= {"markets": ("rating", "12 %", "'12 %' has the sign %")}
"""Task -> a column, a cell that is wrong there, and what is said of it."""


def values(table: Table) -> dict[str, list[object]]:
    return {name: column.to_pylist() for name, column in table.columns.items()}


def test_every_task_is_tried() -> None:
    assert set(TABLES) == set(WRONG) == {name for name in CLIENT_TASKS if name in TABLES}
    assert len(TABLES) == 5


@pytest.mark.parametrize("task", TABLES)
@pytest.mark.parametrize("name", FORMS)
def test_a_table_is_the_same_in_every_form(task: str, name: str, tmp_path: Path) -> None:
    plain = write(tmp_path, "a.csv", *TABLES[task])
    other = write(tmp_path, name, *TABLES[task])
    schema: TableSchema = CLIENT_TASKS[task].schema
    assert values(read_table(other, schema)) == values(read_table(plain, schema))
    read = CLIENT_TASKS[task].read
    assert digest(read(Source(str(other)), None, 0)) == digest(read(Source(str(plain)), None, 0))


@pytest.mark.parametrize("task", TABLES)
@pytest.mark.parametrize("name", FORMS)
def test_titles_may_be_written_in_many_ways(task: str, name: str, tmp_path: Path) -> None:
    titles, rows = TABLES[task]
    schema: TableSchema = CLIENT_TASKS[task].schema
    spelt = [f" {title.upper().replace('_', ' ')} " if title in schema.names else title for title in titles]
    expected = values(read_table(write(tmp_path, "a.csv", titles, rows), schema))
    assert values(read_table(write(tmp_path, name, spelt, rows), schema)) == expected


@pytest.mark.parametrize("task", TABLES)
@pytest.mark.parametrize("name", FORMS)
def test_an_error_says_where_what_and_how_many(task: str, name: str, tmp_path: Path) -> None:
    titles, rows = TABLES[task]
    column, cell, said = WRONG[task]
    place = titles.index(column)
    damaged = [list(row) for row in rows]
    for row in damaged[1:3]:
        row[place] = cell
    path = write(tmp_path, name, titles, damaged)
    with pytest.raises(DataError) as caught:
        CLIENT_TASKS[task].read(Source(str(path)), None, 0)
    error = caught.value
    by_line = not name.startswith("a.") or ".csv" in name or ".tsv" in name
    where = f"{path}, {'line 3' if by_line else 'row 2'}, column '{column}': "
    assert str(error).startswith(f"{where}{said or 'empty cell'} (2 of {len(rows)} cells); ")
    assert (error.path, error.line, error.column, error.cell) == (str(path), 3 if by_line else 2, column, cell)
    assert not any(part in public_reason(error) for part in (str(path), column, "noon", "many", "four", "12 %"))


@pytest.mark.parametrize("task", TABLES)
@pytest.mark.parametrize("name", FORMS)
def test_rows_and_columns_may_come_in_any_number(task: str, name: str, tmp_path: Path) -> None:
    """Blank rows are skipped, an empty table is refused, and so is one of titles nobody knows."""
    titles, rows = TABLES[task]
    read = CLIENT_TASKS[task].read
    blank = write(tmp_path, name, titles, [*rows, [""] * len(titles)])
    assert digest(read(Source(str(blank)), None, 0)) == digest(
        read(Source(str(write(tmp_path, "a.csv", titles, rows))), None, 0)
    )
    strange = write(tmp_path, name, ["x", "y"], [["1", "2"]])
    with pytest.raises(DataError, match="no column '"):
        read(Source(str(strange)), None, 0)
    if name != "a.parquet":
        empty = write(tmp_path, name, titles, [])
        with pytest.raises(DataError, match=r"a header but no rows|the file is empty"):
            read(Source(str(empty)), None, 0)
