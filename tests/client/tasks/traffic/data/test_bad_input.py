"""Tables of readings that are refused, and what is said of them."""

from pathlib import Path

import pytest

from client.tasks.traffic.data.reader import read_series
from common.errors import DataError
from tests.support.files import Writer

HEADER = "timestamp,site,volume"


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        ("a.csv", (), "a.csv: the file is empty"),
        ("a.csv", (HEADER,), "has a header but no rows"),
        (
            "a.csv",
            ("2024-05-31 13:00,a,1", "2024-05-31 14:00,a,1"),
            "line 1, column 'timestamp': no column 'timestamp'",
        ),
        ("a.csv", ("site,volume", "a,1"), "line 1, column 'timestamp': no column 'timestamp'"),
        ("a.csv", ("timestamp,site", "2024-05-31,a"), "line 1: no variable among the columns"),
        ("a.csv", (HEADER, "2024-05-31,a,1", "", "2024-05-31,a"), "a.csv, line 4: 2 cells, but the first line has 3"),
        (
            "a.csv",
            (HEADER, "2024-05-31,a,1", "", "2024-05-31,a,many"),
            "line 4, column 'volume': 'many' is not a number (1 of 2 cells); write digits such as 4.5, or leave the cell empty",
        ),
        (
            "a.csv",
            (HEADER, "2024-05-31,a,1", "2024-05-31,a,Inf"),
            "line 3, column 'volume': 'Inf' is an infinite number",
        ),
        ("a.csv", (HEADER, "2024-05-31,a,1e999"), "line 2, column 'volume': '1e999' is too large a number"),
        ("a.csv", (HEADER, "2024-05-31,,1"), "line 2, column 'site': empty cell"),
        (
            "a.csv.gz",
            (HEADER, "2024-05-31,a,1", "noon,a,1"),
            "a.csv.gz, line 3, column 'timestamp': 'noon' is not a time",
        ),
        ("a.csv", (HEADER, "1/5/2024 13:00,a,1"), "'1/5/2024 13:00' may begin with the day or the month"),
        ("a.csv", (HEADER, "2023-02-29 13:00,a,1"), "line 2, column 'timestamp': '2023-02-29 13:00' is not a time"),
        ("a.csv", (HEADER, "2024,a,1"), "line 2, column 'timestamp': '2024' lies outside the years 1990 to 2100"),
        ("a.csv", (HEADER, "2024-05-31 25:00,a,1"), "line 2, column 'timestamp': '2024-05-31 25:00' is not a time"),
        ("a.csv", (HEADER, ",a,1"), "line 2, column 'timestamp': empty cell"),
        ("a.csv", (HEADER, "2024-05-31,a,"), "no site has a reading of every variable"),
        (
            "a.csv",
            (HEADER, "2024-05-31 00:00,a,1", "2024-05-31 01:00,a,1", "9024-05-31,a,1"),
            "'9024-05-31' lies outside the years 1990 to 2100",
        ),
        ("a.csv", (HEADER + ",volume", "2024-05-31,a,1,2"), "line 1, column 'volume': two columns have this name"),
        ("folder/readme.md", ("hello",), "the folder holds no table"),
    ],
)
def test_bad_input_is_named(text: Writer, name: str, lines: tuple[str, ...], message: str) -> None:
    path = text(*lines, name=name)
    with pytest.raises(DataError) as caught:
        read_series(path.parent if "/" in name else path)
    assert message in str(caught.value)


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere: no such file or folder"):
        read_series(tmp_path / "nowhere")


@pytest.mark.parametrize(("name", "content"), [("a.csv.gz", b"no gzip"), ("a.csv", b"\xff,b\n"), ("a.parquet", b"x")])
def test_files_that_are_no_tables_are_named(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=name):
        read_series(tmp_path / name)
