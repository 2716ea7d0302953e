"""Vocabulary of files, and which of a folder are tables."""

from pathlib import Path

import pytest

from client.data.tables.reader import delimiter_in, plain_name, suffix_of, tables_in


@pytest.mark.parametrize(
    ("name", "plain", "suffix"),
    [
        ("uk.csv", "uk.csv", ".csv"),
        ("UK.TSV.gz", "uk.tsv", ".tsv"),
        ("Metadata_UK.Json", "metadata_uk.json", ".json"),
        ("a.gz", "a", ""),
    ],
)
def test_neither_capitals_nor_gz_count(name: str, plain: str, suffix: str) -> None:
    assert (plain_name(Path(name)), suffix_of(Path(name))) == (plain, suffix)


def test_tables_are_files_of_known_forms_by_name(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    for name in ("c.csv.gz", "b.CSV", "a.tsv", "a.txt", ".a.csv.fedloom-ledger"):
        (tmp_path / name).touch()
    assert [path.name for path in tables_in(tmp_path, (".csv", ".tsv"))] == ["a.tsv", "b.CSV", "c.csv.gz"]


@pytest.mark.parametrize(("line", "mark"), [("a,b;c\td", "\t"), ("a,b;c", ";"), ("a,b", ","), ("a b", "")])
def test_what_stands_between_cells(line: str, mark: str) -> None:
    assert delimiter_in(line) == mark
