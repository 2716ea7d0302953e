"""Tables that a child process reads for a client: the same data and errors as without it."""

import dataclasses
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.data.child_reader import read_partition_apart
from client.data.read import read_all, read_partition
from client.data.tables.schema import Dialect
from client.tasks.registry import CLIENT_TASKS
from common.errors import DataError, FedloomError
from common.tasks.registry import TASKS


def flat(value: Any) -> Any:
    """Return nested data as lists that can be compared, types included."""
    if dataclasses.is_dataclass(value):
        fields = [flat(getattr(value, field.name)) for field in dataclasses.fields(value)]
        return [type(value).__qualname__, *fields]
    if isinstance(value, tuple):
        return [flat(each) for each in value]
    return [str(value.dtype), value.shape, value.tolist()] if isinstance(value, np.ndarray) else value


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "sensors.csv"
    CLIENT_TASKS["traffic"].write(path, read_all("traffic", "demo:0-2"))
    return path


@pytest.mark.parametrize("task", TASKS)
def test_a_table_of_every_task_is_the_same(task: str, tmp_path: Path) -> None:
    path, demo = tmp_path / "own.csv", read_all(task, "demo:0-4")
    CLIENT_TASKS[task].write(path, demo)
    found = read_partition_apart(task, str(path), (1, 2), 3, demo.vocabulary)
    assert flat(found) == flat(read_partition(task, str(path), (1, 2), 3, demo.vocabulary))


def test_the_dialect_reaches_the_child(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("wer;was;wie\na;x;1,5\na;y;2,5\nb;x;3,0\n")
    dialect = Dialect({"user": "wer", "item": "was", "rating": "wie"}, decimal="comma")
    found = read_partition_apart("ratings", str(path), (0, 1), dialect=dialect)
    assert flat(found) == flat(read_partition("ratings", str(path), (0, 1), dialect=dialect))


@pytest.mark.parametrize(
    ("task", "text"),
    [
        ("traffic", "timestamp,volume\n2026-01-01,4\n2026-01-02,four\n"),
        ("traffic", "timestamp,volume\n"),
        ("ratings", "user,item\na,x\n"),
        ("sessions", None),
    ],
)
def test_errors_are_the_same(task: str, text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    if text is not None:
        path.write_text(text)
    with pytest.raises(FedloomError) as here:
        read_partition(task, str(path), (0, 1))
    with pytest.raises(FedloomError) as apart:
        read_partition_apart(task, str(path), (0, 1))
    assert (type(apart.value), str(apart.value)) == (type(here.value), str(here.value))
    assert vars(apart.value) == vars(here.value)


def program(folder: Path, script: str) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return str(path)


@pytest.mark.parametrize(
    "script", ["kill -9 $$", "cat > /dev/null; exit 3", "cat > /dev/null; printf '{\"dataset\"'; exit 3"]
)
def test_a_child_that_ends_early_is_an_error(
    script: str, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", program(tmp_path, script))
    with pytest.raises(DataError, match=r"sensors\.csv: the process that reads the data ended with exit code (-9|3)"):
        read_partition_apart("traffic", str(table), (0, 1))


def test_units_without_a_column_form_are_read_here(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", program(tmp_path, "cat > /dev/null; echo '{}'"))
    found = read_partition_apart("traffic", str(table), (0, 1))
    assert flat(found) == flat(read_partition("traffic", str(table), (0, 1)))


def test_a_folder_named_like_a_package_does_not_get_in_the_way(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "client").mkdir()
    (tmp_path / "client" / "__init__.py").write_text("raise SystemExit('wrong package')")
    monkeypatch.chdir(tmp_path)
    assert os.path.exists("client")
    assert len(read_partition_apart("traffic", table.name, (0, 1)).units) == 2
