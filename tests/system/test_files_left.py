"""Files that a federation leaves behind: closed to others, and without updates, messages or keys outside their files."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from tests.system.desk import Desk

pytestmark = pytest.mark.system

MODELS = ".safetensors"
"""Suffix of models of the run, of its checkpoints, and of the finished model of each client."""

JOURNAL = "journal.jsonl"
"""A client's own record of what it sent: names and sizes of arrays, without values."""


def files_of(*folders: Path) -> Iterator[Path]:
    return (path for folder in folders for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


@pytest.mark.parametrize("state", ["memory", "sqlite"])
def test_nothing_of_an_update_stays_behind_and_others_read_nothing(state: str, desk: Desk) -> None:
    options = ("--data", "demo:0-12", "--clients", "3", "--rounds", "2", "--run-id", "left", "--patience", "0")
    up = desk.up(*options, "--superlink-state", state)
    up.wait_for("round 1/2")
    assert len([*desk.folder.rglob("superlink.sqlite")]) == (state == "sqlite")
    assert up.end() == 0, up.error()
    assert [*desk.folder.rglob("superlink.sqlite*")] == []
    runs, home = desk.folder / "runs", desk.folder / ".fedloom"
    opened = [path for folder in (runs, home) for path in [folder, *folder.rglob("*")] if path.lstat().st_mode & 0o077]
    assert [str(path) for path in opened if not path.is_symlink()] == []

    model = load_file(runs / "left" / "model.safetensors")
    floats = [array.tobytes()[:16] for array in model.values() if len(set(array.ravel()[:4].tolist())) == 4]
    names = [b"wire.arrays", *(name.encode() for name in model if "." in name)]
    assert len(floats) > 4
    assert len(names) > 4
    others = [path for path in files_of(runs, home, desk.folder / ".flwr") if path.suffix != MODELS]
    assert len(others) > 10
    contents = {str(path.relative_to(desk.folder)): path.read_bytes() for path in others}
    assert {name for name, content in contents.items() for values in floats if values in content} == set()
    assert {
        name for name, content in contents.items() for array in names if array in content and JOURNAL not in name
    } == set()
    holders = {name for name, content in contents.items() if b"PRIVATE KEY" in content}
    assert holders
    assert all(name.endswith(".key") for name in holders)
