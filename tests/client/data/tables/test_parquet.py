"""Parquet: types of its own, names of columns, and damaged bytes."""

from pathlib import Path
from random import Random

import pyarrow
import pyarrow.parquet
import pytest

from client.data.tables.reader import read_table
from client.data.tables.schema import Column, TableSchema
from common.errors import DataError

SCHEMA = TableSchema((Column("a", "text"), Column("n", "number", blank="missing"), Column("t", "time")))


def written(folder: Path, **columns: pyarrow.Array) -> Path:
    path = folder / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def stamps(*values: int) -> pyarrow.Array:
    return pyarrow.array(values, pyarrow.timestamp("us"))


def test_columns_keep_their_types(tmp_path: Path) -> None:
    names = pyarrow.array(["x", "y"]).dictionary_encode()
    path = written(
        tmp_path, t=stamps(10**15, 2 * 10**15), x=pyarrow.array([[1], []]), a=names, n=pyarrow.array([1, None])
    )
    table = read_table(path, SCHEMA)
    assert {name: column.to_pylist() for name, column in table.columns.items()} == {
        "a": ["x", "y"],
        "n": [1, None],
        "t": [1e9, 2e9],
    }


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        (
            "t",
            stamps(10**15, 2**62),
            r"row 2, column 't': '<value out of range: \d+…' lies outside the years",
        ),
        (
            "a",
            pyarrow.array([{"b": 1}, {"b": 2}]),
            r"row 1, column 'a': a cell is of type struct<b: int64> \(2 of 2 cells\)",
        ),
        ("a", pyarrow.array([["p,q"], ["r"]]), "row 1, column 'a': a cell is of type list"),
        ("a", pyarrow.array([b"\xff", b"x"]), "row 1, column 'a': a cell is of type binary"),
        ("n", pyarrow.array([float("inf"), 1]), r"row 1, column 'n': 'inf' is an infinite number \(1 of 2 cells\)"),
        ("n", stamps(10**15, 10**15), "row 1, column 'n': '2001-09-09 01:46:40.000000' is not a number"),
        ("t", pyarrow.array([True, False]), "row 1, column 't': 'true' is not a time"),
    ],
)
def test_cells_of_other_types_are_named(tmp_path: Path, column: str, values: pyarrow.Array, message: str) -> None:
    columns = {"a": pyarrow.array(["x", "y"]), "n": pyarrow.array([1, 2]), "t": stamps(10**15, 10**15), column: values}
    with pytest.raises(DataError, match=message):
        read_table(written(tmp_path, **columns), SCHEMA)


def test_damaged_bytes_are_refused_or_read(tmp_path: Path) -> None:
    path = written(tmp_path, a=pyarrow.array(["x", "y"] * 50), n=pyarrow.array(range(100)), t=stamps(*[10**15] * 100))
    content, refused = path.read_bytes(), 0
    for seed in range(300):
        random, damaged = Random(seed), bytearray(content)
        for _ in range(random.randint(1, 4)):
            damaged[random.randrange(4, len(damaged))] = random.randrange(256)
        path.write_bytes(bytes(damaged))
        try:
            read_table(path, SCHEMA)
        except DataError:
            refused += 1
    assert 100 < refused < 300
