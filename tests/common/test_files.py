"""A write that fails leaves the old file and no draft."""

import errno
import fcntl
import os
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from common.files import HeldError, close_to_others, exclusive, holder, remove_drafts, write_atomically


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


HOLD = textwrap.dedent("""
    import sys, time
    from pathlib import Path
    from common.files import exclusive
    with exclusive(Path(sys.argv[1])):
        print("held", flush=True)
        time.sleep(float(sys.argv[2]))
""")


def hold(path: Path, seconds: float) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", HOLD, str(path), str(seconds)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    other = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
    assert other.stdout is not None
    other.stdout.readline()
    return other


def test_a_held_lock_names_its_holder_and_a_killed_one_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with hold(path, 60) as other:
        assert holder(path) == other.pid
        with pytest.raises(HeldError, match=f"^process {other.pid}$"), exclusive(path):
            pass
        other.kill()
    assert holder(path) == other.pid, "the last word of a process that was killed"
    with exclusive(path):
        assert holder(path) == os.getpid()
    assert holder(path) == 0


def test_a_process_that_is_about_to_end_is_waited_for(tmp_path: Path) -> None:
    with hold(tmp_path / "lock", 0.3) as other:
        start = time.monotonic()
        with exclusive(tmp_path / "lock", wait=20.0):
            assert time.monotonic() - start < 15
        other.wait(10)


@pytest.mark.parametrize("content", [b"", b"\xff", b"soon"])
def test_a_damaged_lock_file_names_nobody(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "lock").write_bytes(content)
    assert holder(tmp_path / "lock") == 0
    assert holder(tmp_path / "none") == 0


def test_a_file_system_without_locks_is_used_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(file: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with exclusive(tmp_path / "lock"):
        assert holder(tmp_path / "lock") == os.getpid()
    assert holder(tmp_path / "lock") == 0
    assert f"{tmp_path} cannot be locked: " in caplog.text


def test_a_second_holder_in_the_same_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with exclusive(path), pytest.raises(HeldError, match=f"^process {os.getpid()}$"), exclusive(path):
        pass
    with exclusive(path):
        assert path.stat().st_size > 0


def test_a_block_may_remove_its_lock_file(tmp_path: Path) -> None:
    with exclusive(tmp_path / "lock"):
        (tmp_path / "lock").unlink()
    assert not (tmp_path / "lock").exists()
