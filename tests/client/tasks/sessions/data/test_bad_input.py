"""Sessions that are refused, and what is said of them."""

from pathlib import Path

import pytest

from client.tasks.sessions.data.reader import read_visitors
from common.errors import DataError
from tests.support.files import Writer

HEADER = "user,item,timestamp"


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        ("a.txt", (), "a.txt: the file is empty"),
        ("a.csv", (" ",), "a.csv: the file is empty"),
        ("a.csv", (HEADER,), "has a header but no rows"),
        ("a.txt", ("a", "b"), "no session of two clicks"),
        (
            "a.csv",
            ("who,what,when", "1,2,3"),
            "line 1, column 'item': no column 'item'; the table needs item and session",
        ),
        (
            "a.csv",
            ("user,item", "1,2"),
            "no column 'timestamp'; the table needs item and session, or item, user and timestamp",
        ),
        ("a.csv", ("note;items", "1;2,3"), "or items and user, or items and session: rename a column, or say --column"),
        ("a.csv", (HEADER, "ann,a,1", "", "ann,,2"), "a.csv, line 4, column 'item': empty cell"),
        ("a.csv", (HEADER, "ann,a,1", "", "ann,a"), "a.csv, line 4: 2 cells, but the first line has 3"),
        ("a.csv.gz", (HEADER, "ann,a,1", "ann,a,noon"), "a.csv.gz, line 3, column 'timestamp': 'noon' is not a time"),
        (
            "a.csv",
            (HEADER + ",split", "ann,a,1,train", "ann,a,2,tset"),
            "line 3, column 'split': 'tset' is no part of the data",
        ),
        ("folder/readme.md", ("hello",), "the folder holds no table"),
    ],
)
def test_bad_input_is_named(text: Writer, name: str, lines: tuple[str, ...], message: str) -> None:
    path = text(*lines, name=name)
    with pytest.raises(DataError) as caught:
        read_visitors(path.parent if "/" in name else path)
    assert message in str(caught.value)


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere: no such file or folder"):
        read_visitors(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "content"), [("a.txt", b"\xff\xfe a"), ("a.txt.gz", b"no gzip"), ("a.csv", b"\xff,b\n")]
)
def test_files_that_are_no_text_are_named(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=name):
        read_visitors(tmp_path / name)
