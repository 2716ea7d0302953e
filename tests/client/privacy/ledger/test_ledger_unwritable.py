"""A ledger that is locked, read-only or out of room: nothing is released, and the error says why."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from client.privacy.ledger import database
from common.errors import LedgerError
from tests.support.ledgers import opened, spend


def test_a_ledger_that_another_process_holds_is_waited_for_and_then_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    ledger = opened(folder)
    other = sqlite3.connect(folder / "ledger", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="another process is using it"):
        spend(ledger, 5, 6)
    other.execute("ROLLBACK")
    spend(ledger, 5, 6)


def test_files_are_their_owner_s_only(folder: Path) -> None:
    opened(folder)
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir() if path.is_file()}
    assert modes == dict.fromkeys(modes, 0o600)
    assert (folder / "ledger-kept").stat().st_mode & 0o777 == 0o700


RELEASE = """
import os, resource, sys
from pathlib import Path
from client.privacy.ledger.database import Slot
from common.errors import StateError
from common.privacy.mechanisms import Gaussian
from tests.support.ledgers import opened
{before}
try:
    ledger = opened(Path(sys.argv[1]))
    {between}
    ledger.release(Slot("run", 7), ledger.terms(Gaussian(0.01, 1.0)), lambda: print("made") or b"x" * 100)
except StateError as error:
    print("refused:", error)
"""


@pytest.fixture
def public(folder: Path) -> Iterator[Path]:
    """Return the ledger where another user can reach it."""
    place = Path(tempfile.mkdtemp(dir="/tmp"))
    shutil.copytree(folder, place, dirs_exist_ok=True)
    place.chmod(0o755)
    (place / "state").chmod(0o777)
    for path in place.rglob("*"):
        path.chmod(0o777 if path.is_dir() else 0o666)
    yield place
    shutil.rmtree(place)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become another user")
@pytest.mark.parametrize("path", [".", "ledger", "state/record.json"])
def test_where_nothing_may_be_written_nothing_is_released(path: str, public: Path) -> None:
    (public / path).chmod(0o555 if path == "." else 0o444)
    code = RELEASE.format(before="os.setgid(65534); os.setuid(65534)", between="")
    output = said(code, public)
    assert output.startswith("refused:")
    assert "made" not in output


def test_a_full_disk_releases_nothing(folder: Path) -> None:
    """Files cannot grow: the ledger's log is an empty file then."""
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))"
    output = said(RELEASE.format(before="", between=limit), folder)
    assert output.startswith("refused:")
    assert "free disk space" in output
    assert "made" not in output
    assert opened(folder).spent() == pytest.approx(0.03)


def said(code: str, folder: Path) -> str:
    command = [sys.executable, "-B", "-c", code, str(folder)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": os.getcwd()}
    )
    assert not done.stderr, done.stderr
    return done.stdout
