"""Files that are too wide, too long, or expand too much are refused; equal cells are converted once."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from client.data.tables import files as formats
from client.data.tables import reader as parquet
from client.data.tables.files import load
from client.data.tables.reader import read_table
from client.data.tables.schema import CellError
from client.data.tables.table import LONG, convert_distinct, to_numbers
from client.tasks.ratings.data.raters import SCHEMA
from common.errors import DataError
from tests.support.files import Writer


def test_a_table_of_more_than_ten_thousand_columns_is_refused(text: Writer) -> None:
    titles = [f"c{k}" for k in range(10_001)]
    with pytest.raises(DataError, match=r"line 1: 10,001 columns, more than 10,000; leave out"):
        read_table(text(",".join(titles), ",".join(titles)), SCHEMA)


def test_a_cell_of_more_than_a_million_bytes_is_refused_and_cut(text: Writer) -> None:
    path = text("user,item,rating", "ann,tea,4", f"bob,{'x' * 1_000_001},4")
    with pytest.raises(DataError, match=r"line 3, column 'item': 'x{39}…' is longer than 1,000,000 bytes") as caught:
        read_table(path, SCHEMA)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("start", [b"", b"PAR1"])
def test_a_compressed_file_that_expands_a_thousand_times_is_refused(start: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(start + b"user,item,rating\n" + b"ann,tea,4\n" * 3_000_000))
    with pytest.raises(DataError, match=r"expands to more than 16,777,216 bytes from [\d,]+; give the table unpacked"):
        load(path)


def test_a_small_file_may_expand_as_it_likes(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"user,item,rating\n" + b"ann,tea,4\n" * 100_000))
    assert len(read_table(path, SCHEMA)) == 100_000


def test_parquet_that_decodes_to_too_many_bytes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, rows = tmp_path / "a.parquet", 50_000
    columns = {"user": ["ann" * 100] * rows, "item": ["tea"] * rows, "rating": [4.0] * rows}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    assert path.stat().st_size < 10_000
    assert len(read_table(path, SCHEMA)) == rows
    monkeypatch.setattr(parquet, "EXPANDED_LIMIT", 10_000_000)
    with pytest.raises(DataError, match="expands to more than 10,000,000 bytes; split the file"):
        read_table(path, SCHEMA)


def test_bytes_beyond_the_limit_of_all_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(np.random.default_rng(0).bytes(1_500_000).hex().encode()))
    monkeypatch.setattr(formats, "EXPANDED_LIMIT", 2**20)
    with pytest.raises(DataError, match="expands to more than 1,048,576 bytes"):
        load(path)


def test_equal_cells_of_a_long_column_are_converted_once() -> None:
    asked = []

    def convert(cells: pyarrow.Array) -> pyarrow.Array:
        asked.append(len(cells))
        return to_numbers(cells, "auto", comma_separated=False)

    column = pyarrow.array(["4,5", None, "1"] * LONG)
    assert convert_distinct(column, convert).to_pylist() == [4.5, None, 1.0] * LONG
    assert asked == [2]
    distinct = pyarrow.array([str(k) for k in range(LONG)])
    assert convert_distinct(distinct, convert).to_pylist() == list(range(LONG))
    assert asked == [2, LONG]


def test_a_wrong_cell_of_a_long_column_is_found_in_its_row() -> None:
    column = pyarrow.array([None, "4", "four", "5"] * LONG)
    with pytest.raises(CellError) as caught:
        convert_distinct(column, lambda cells: to_numbers(cells, "auto", comma_separated=False))
    assert (caught.value.row, caught.value.wrong.sum(), len(caught.value.wrong)) == (2, LONG, 4 * LONG)
