"""A write that fails leaves the old file and no draft."""

import os
import stat
from pathlib import Path

import pytest

from common.files import close_to_others, remove_drafts, write_atomically


def test_replaces_the_file(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "result.json"
    write_atomically(path, b"old")

    def no_space(fd: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", no_space)
    with pytest.raises(OSError, match="no space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_drafts_of_killed_processes_are_removed(tmp_path: Path) -> None:
    write_atomically(tmp_path / "result.json", b"whole")
    (tmp_path / ".model.safetensors.27.tmp").write_bytes(b"torn")
    remove_drafts(tmp_path, tmp_path / "missing")
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


@pytest.mark.parametrize(("setting", "mode"), [(None, 0o600), ("027", 0o640), ("wrong", 0o600)])
def test_new_files_are_closed_to_others_unless_the_owner_opens_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str | None, mode: int
) -> None:
    monkeypatch.delenv("FEDLOOM_UMASK", raising=False)
    if setting is not None:
        monkeypatch.setenv("FEDLOOM_UMASK", setting)
    before = os.umask(0o022)
    try:
        close_to_others()
        write_atomically(tmp_path / "result.json", b"{}")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "result.json").stat().st_mode) == mode
