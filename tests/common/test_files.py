"""A write that fails leaves the old file and no draft."""

from pathlib import Path

import pytest

from common.files import write_atomically


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
