"""Folders of clients' tables, and a client's part as a table of its own."""

from pathlib import Path

import pytest

from client.data.read import find_own_tables, read_all
from client.data.tables.files import TABLES
from client.tasks.registry import CLIENT_TASKS
from common.tasks.registry import TASKS

FORMS = [form for name in TABLES for form in ((name,) if name == ".parquet" else (name, f"{name}.gz"))]


@pytest.mark.parametrize("suffix", FORMS)
@pytest.mark.parametrize("task", TASKS)
def test_every_table_that_can_be_read_is_a_client_s_own(task: str, suffix: str, tmp_path: Path) -> None:
    for name in (f"b{suffix}", f"a{suffix}", "notes.md"):
        (tmp_path / name).touch()
    assert find_own_tables(task, str(tmp_path)) == [tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"]


@pytest.mark.parametrize("name", ["demo", "a.csv", "nowhere"])
@pytest.mark.parametrize("task", TASKS)
def test_what_is_no_folder_has_no_tables(task: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    assert find_own_tables(task, name if name == "demo" else str(tmp_path / name)) == []


@pytest.mark.parametrize(
    ("task", "names"),
    [
        ("rules", ("rules", "trainset", "validationset", "testset")),
        ("sessions", ("train.csv",)),
        ("traffic", ("TX.VOL",)),
        ("ratings", ("filmtrust_1_train.tsv",)),
        ("markets", ("catalogue.csv",)),
    ],
)
def test_a_published_set_is_no_folder_of_clients(task: str, names: tuple[str, ...], tmp_path: Path) -> None:
    for name in (*names, "a.csv", "b.tsv"):
        (tmp_path / name).touch()
    assert find_own_tables(task, str(tmp_path)) == []


@pytest.mark.parametrize("task", TASKS)
def test_only_the_owner_may_read_a_written_part(task: str, tmp_path: Path) -> None:
    fresh, old = tmp_path / CLIENT_TASKS[task].table, tmp_path / "old.csv"
    old.touch(mode=0o644)
    for path in (fresh, old):
        CLIENT_TASKS[task].write(path, read_all(task, "demo:0-1"))
        assert path.stat().st_mode & 0o777 == 0o600
