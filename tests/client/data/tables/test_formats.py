"""Names of files, their bytes, and files that are no text."""

import gzip
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from client.data.dataset import Source
from client.data.read import read_all
from client.data.tables.files import LINE_LIMIT, load, plain_name, stem_of, suffix_of, tables_in
from client.tasks.registry import CLIENT_TASKS
from common.errors import DataError
from tests.support.tables import FORMS, TABLES, write

opened: list[str] = []
"""Files that are opened while the test looks."""
looking: list[bool] = []


def note_opening(event: str, arguments: tuple[object, ...]) -> None:
    if looking and event == "open":
        opened.append(str(arguments[0]))


@pytest.fixture
def openings() -> Iterator[list[str]]:
    """List every file that Python opens; Python cannot remove the hook, so it ignores calls after the test."""
    if not hasattr(sys, "_fedloom_hook"):
        sys.addaudithook(note_opening)
        sys._fedloom_hook = True  # type: ignore[attr-defined]
    opened.clear()
    looking.append(True)
    yield opened
    looking.clear()


@pytest.mark.parametrize(
    ("name", "plain", "suffix", "stem"),
    [
        ("uk.csv", "uk.csv", ".csv", "uk"),
        ("UK.TSV.gz", "uk.tsv", ".tsv", "UK"),
        ("Metadata_UK.Json", "metadata_uk.json", ".json", "Metadata_UK"),
        ("a.gz", "a", "", "a"),
    ],
)
def test_neither_case_nor_gz_counts(name: str, plain: str, suffix: str, stem: str) -> None:
    assert (plain_name(Path(name)), suffix_of(Path(name)), stem_of(Path(name))) == (plain, suffix, stem)


def test_tables_are_files_with_a_suffix_of_tables_by_name(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    for name in ("c.csv.gz", "b.CSV", "a.tsv", "d.jsonl", "e.parquet", "a.txt", ".a.csv.fedloom-ledger"):
        (tmp_path / name).touch()
    assert [path.name for path in tables_in(tmp_path)] == ["a.tsv", "b.CSV", "c.csv.gz", "d.jsonl", "e.parquet"]
    assert [path.name for path in tables_in(tmp_path, (".txt",))] == ["a.txt"]


@pytest.mark.parametrize("content", [b"\xef\xbb\xbfa\xc3\xa9\r\nb\r\n", "aé\rb\r".encode("utf-16"), b"a\xc3\xa9\nb\n"])
@pytest.mark.parametrize("packed", [False, True])
def test_text_is_utf_8_with_line_feeds_whatever_it_was(tmp_path: Path, content: bytes, packed: bool) -> None:
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(content) if packed else content)
    assert load(path).data == "aé\nb\n".encode()


@pytest.mark.parametrize(
    ("content", "line"),
    [(b"a,b\n1,2\n3,\xff\n", 3), (b"caf\xe9", 1), (b"a\n" * 3_000_000 + b"\xc3", 3_000_001), (b"\xff\xfea\0b", 1)],
)
def test_the_first_line_in_another_encoding_is_named(tmp_path: Path, content: bytes, line: int) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(DataError, match="not text in UTF-8; save the file as UTF-8") as caught:
        load(tmp_path / "a.csv")
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "a.csv: the file is empty"),
        ("a.csv", b" \n\n", "a.csv: the file is empty"),
        ("a.csv", b"a,b\n1,\0\n", "a.csv, line 2: NUL bytes are no text"),
        (
            "a.csv",
            "a,b\n".encode("utf-16-le"),
            "a.csv, line 1: NUL bytes are no text; save the file as UTF-8, or say --encoding utf-16-le",
        ),
        ("a.csv", b"PK\x03\x04\x14", "a workbook or ZIP archive, not text; save the table as CSV"),
        ("a.csv.gz", b"a,b\n", "cannot be read as gzip; compress it again, or drop .gz from its name"),
        ("a.csv.gz", gzip.compress(b"a,b\n" * 999, mtime=0)[:-9], "cannot be read as gzip; is it complete?"),
        ("a.csv.gz", b"\x1f\x8b" + b"\0" * 30, "cannot be read as gzip"),
        ("a.parquet", b"a,b\n", "not Parquet, as its name says; is the file complete?"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        load(tmp_path / name)
    assert message in str(caught.value)


@pytest.mark.parametrize("packed", [False, True])
def test_a_line_of_a_gigabyte_is_refused_before_it_is_read(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "a.csv"
    if packed:
        path.write_bytes(gzip.compress(b"a,b\n") + gzip.compress(bytes([120]) * 2**26) * 16)
    else:
        path.write_bytes(b"a,b\n")
        os.truncate(path, 2**30)
    with pytest.raises(DataError, match=f"line 2: longer than {LINE_LIMIT:,} bytes"):
        load(path)


def test_a_line_of_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"a\n" + b"x" * LINE_LIMIT + b"\n")
    assert len(load(path).data) == LINE_LIMIT + 3
    path.write_bytes(b"a\n" + b"x" * (LINE_LIMIT + 1))
    with pytest.raises(DataError, match="line 2: longer than"):
        load(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link.csv").symlink_to(tmp_path / "nowhere.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    for name, message in {"": "not a file", "link.csv": "No such file", "pipe.csv": "not a file"}.items():
        with pytest.raises(DataError, match=message):
            load(tmp_path / name)


@pytest.mark.parametrize("task", TABLES)
@pytest.mark.parametrize("name", FORMS)
def test_a_file_is_opened_once(task: str, name: str, tmp_path: Path, openings: list[str]) -> None:
    path = write(tmp_path, name, *TABLES[task])
    openings.clear()
    CLIENT_TASKS[task].read(Source(str(path)), None, 0)
    assert [file for file in openings if file.startswith(str(tmp_path))] == [str(path)]


def test_strings_that_polars_writes_are_read(tmp_path: Path) -> None:
    columns = {"user": ["ann", "bob"], "item": ["x", "a name of more than twelve bytes"], "rating": [1.0, 2.5]}
    views = pa.table(
        {name: pa.array(values, pa.string_view() if name != "rating" else None) for name, values in columns.items()}
    )
    pq.write_table(views, tmp_path / "views.parquet")
    assert pq.read_schema(tmp_path / "views.parquet").field("item").type == pa.string_view()
    plain = {name: pa.array(values) for name, values in columns.items()}
    pq.write_table(pa.table(plain), tmp_path / "plain.parquet")
    found = [read_all("ratings", str(tmp_path / f"{name}.parquet")) for name in ("views", "plain")]
    assert found[0].vocabulary == found[1].vocabulary
    assert found[0].units[1].name == "bob"
