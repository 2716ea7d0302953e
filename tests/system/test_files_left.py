"""Files that a federation leaves behind: closed to others, and without updates, messages or keys outside their files."""

import pytest

from tests.support.files_left import files_in, require_nothing_left
from tests.system.desk import NETWORK, Desk

pytestmark = pytest.mark.system


def test_nothing_of_an_update_stays_behind_and_others_read_nothing(desk: Desk) -> None:
    options = ("--data", "demo:0-12", "--clients", "3", *NETWORK, "--rounds", "2", "--patience", "0")
    up = desk.up(*options, "--run-id", "left", "--superlink-state", "sqlite")
    up.wait_for("round 1/2")
    assert len([*desk.folder.rglob("superlink.sqlite")]) == 1  # test_faults.py: with its state in memory there is none
    assert up.end() == 0, up.error()
    assert [*desk.folder.rglob("superlink.sqlite*")] == []
    runs, home = desk.folder / "runs", desk.folder / ".fedloom"
    opened = [path for folder in (runs, home) for path in [folder, *folder.rglob("*")] if path.lstat().st_mode & 0o077]
    assert [str(path) for path in opened if not path.is_symlink()] == []
    require_nothing_left(files_in([runs, home, desk.folder / ".flwr"]))
