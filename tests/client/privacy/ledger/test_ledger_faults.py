"""A ledger that is missing, damaged, behind, locked, read-only or out of room: nothing is released, and the error says why."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from client.privacy.ledger import database as book
from client.privacy.ledger.database import create
from client.privacy.ledger.ledger import Ledger
from client.privacy.ledger.records import Slot
from client.privacy.ledger.rollback import LedgerHead, RollbackRecord
from common.errors import LedgerError, StateError
from common.privacy.accounts import Zcdp
from common.privacy.mechanisms.gaussian import Gaussian


def opened(folder: Path) -> Ledger:
    return Ledger(folder / "ledger", "client", Zcdp(), 10.0, 1e-5, RollbackRecord(folder / "state" / "witness.json"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A closed ledger with three releases."""
    create(tmp_path / "ledger", "lineage")
    ledger = opened(tmp_path)
    spend(ledger, 0, 3)
    ledger.close()
    return tmp_path


def spend(ledger: Ledger, start: int, stop: int) -> None:
    for number in range(start, stop):
        ledger.release(Slot("run", number), ledger.terms(Gaussian(0.01, 1.0)), lambda: b"noise")


def refuses(folder: Path, match: str) -> None:
    """Neither opens nor releases."""
    made: list[int] = []

    def make() -> bytes:
        made.append(1)
        return b"noise"

    with pytest.raises(LedgerError, match=match):
        opened(folder).release(Slot("run", 9), opened(folder).terms(Gaussian(0.01, 1.0)), make)
    assert not made


def statement(path: Path, sql: str) -> None:
    db = sqlite3.connect(path)
    db.execute(sql)
    db.commit()
    db.close()


def truncate(keep: float) -> Callable[[Path], None]:
    return lambda path: os.truncate(path, int(path.stat().st_size * keep))


def scribble(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for place in range(4096, len(content), 64):
        content[place] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        Path.unlink,
        truncate(0),
        truncate(0.3),
        truncate(0.9),
        scribble,
        lambda path: path.write_bytes(b"not a ledger" * 1000),
        lambda path: statement(path, "UPDATE releases SET cost = cost / 2 WHERE sequence = 2"),
        lambda path: statement(path, "UPDATE releases SET cost = 'cheap' || cost WHERE 0"),
        lambda path: statement(path, "DELETE FROM releases WHERE sequence = 2"),
        lambda path: statement(path, "DELETE FROM releases WHERE sequence = 3"),
        lambda path: statement(path, "DELETE FROM releases"),
        lambda path: statement(path, "UPDATE accounts SET epsilon = 1e9"),
        lambda path: statement(path, "DROP TABLE releases"),
        lambda path: statement(path, "PRAGMA user_version = 2"),
        lambda path: statement(path, "UPDATE ledger SET lineage = 'other'"),
    ],
)
def test_a_damaged_ledger_releases_nothing(damage: Callable[[Path], None], folder: Path) -> None:
    before = (folder / "ledger").read_bytes()
    damage(folder / "ledger")
    if (folder / "ledger").exists() and (folder / "ledger").read_bytes() == before:
        assert opened(folder).spent() == pytest.approx(0.03), "a statement that changes nothing does no harm"
        return
    refuses(folder, "ledger")


def test_an_older_copy_is_noticed_and_the_newest_goes_on(folder: Path) -> None:
    shutil.copy(folder / "ledger", folder / "older")
    ledger = opened(folder)
    spend(ledger, 3, 5)
    ledger.close()
    (folder / "ledger").rename(folder / "newest")
    (folder / "older").rename(folder / "ledger")
    refuses(folder, "older copy")
    (folder / "newest").rename(folder / "ledger")
    assert opened(folder).spent() == pytest.approx(0.05)


def test_an_older_copy_that_went_another_way_is_noticed(folder: Path) -> None:
    shutil.copy(folder / "ledger", folder / "older")
    ledger = opened(folder)
    spend(ledger, 3, 4)
    ledger.close()
    (folder / "older").rename(folder / "ledger")
    other = Ledger(folder / "ledger", "client", Zcdp(), 10.0, 1e-5, RollbackRecord(folder / "elsewhere.json"))
    spend(other, 10, 15)
    other.close()
    refuses(folder, "older copy")


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.rename(path.with_name("moved"))])
def test_a_ledger_that_is_taken_away_while_open_is_noticed(damage: Callable[[Path], None], folder: Path) -> None:
    ledger = opened(folder)
    damage(folder / "ledger")
    with pytest.raises(LedgerError, match="taken away"):
        spend(ledger, 5, 6)


def test_a_log_that_was_lost_is_noticed(folder: Path) -> None:
    """The write-ahead log holds the newest rows until the ledger is closed."""
    ledger = opened(folder)
    spend(ledger, 3, 5)
    for name in ("ledger", "ledger-wal", "state/witness.json"):
        shutil.copy(folder / name, folder / f"{Path(name).name}-copy")
    ledger.close()
    crashed = folder / "crashed"
    (crashed / "state").mkdir(parents=True)
    shutil.copy(folder / "ledger-copy", crashed / "ledger")
    shutil.copy(folder / "witness.json-copy", crashed / "state" / "witness.json")
    refuses(crashed, "lacks releases")
    shutil.copy(folder / "ledger-wal-copy", crashed / "ledger-wal")
    assert opened(crashed).spent() == pytest.approx(0.05)


def test_a_witness_that_fell_behind_catches_up(folder: Path) -> None:
    witness = RollbackRecord(folder / "state" / "witness.json")
    before = witness.read()
    ledger = opened(folder)
    spend(ledger, 3, 5)
    assert before is not None
    witness.write(before)
    assert opened(folder).spent() == pytest.approx(0.05)
    seen = witness.read()
    assert seen is not None
    assert (seen.sequence, seen.lineage) == (5, "lineage")
    assert dict(seen.spent) == {"client": pytest.approx(0.05)}


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"lineage": 1}', b"\xff\xfe"])
def test_a_damaged_witness_is_told(content: bytes, folder: Path) -> None:
    (folder / "state" / "witness.json").write_bytes(content)
    refuses(folder, "witness.json cannot be read")


def test_a_witness_is_overwritten_in_place_whole(tmp_path: Path) -> None:
    witness = RollbackRecord(tmp_path / "state" / "witness.json")
    assert witness.read() is None
    for seen in (LedgerHead("l", "/a", 10**9, "f" * 64, (("client", 1 / 3),)), LedgerHead("l", "/b")):
        witness.write(seen)
        assert (witness.read(), witness.path.stat().st_size) == (seen, 2048)
    assert witness.path.stat().st_mode & 0o777 == 0o600
    long = LedgerHead("l", "/" + "x" * 4000)
    witness.write(long)
    assert witness.read() == long


def test_a_ledger_that_another_process_holds_is_waited_for_and_then_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(book, "PATIENCE", 0.1)
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


@pytest.mark.parametrize("place", ["", "0"])
def test_kept_bytes_that_are_damaged_are_paid_anew(place: str, folder: Path) -> None:
    (folder / "ledger-kept" / "1").write_bytes(place.encode() * 40)
    ledger = opened(folder)
    assert ledger.release(Slot("run", 0), ledger.terms(Gaussian(0.01, 1.0)), lambda: b"new noise") == b"new noise"
    assert ledger.spent() == pytest.approx(0.04)


RELEASE = """
import os, resource, sys
from pathlib import Path
from tests.client.privacy.ledger import test_ledger_faults as faults
{before}
try:
    ledger = faults.opened(Path(sys.argv[1]))
    {between}
    ledger.release(faults.Slot("run", 7), ledger.terms(faults.Gaussian(0.01, 1.0)), lambda: print("made") or b"x" * 100)
except faults.StateError as error:
    print("refused:", error)
"""


@pytest.fixture
def public(folder: Path) -> Iterator[Path]:
    """The ledger where another user can reach it."""
    place = Path(tempfile.mkdtemp(dir="/tmp"))
    shutil.copytree(folder, place, dirs_exist_ok=True)
    place.chmod(0o755)
    (place / "state").chmod(0o777)
    for path in place.rglob("*"):
        path.chmod(0o777 if path.is_dir() else 0o666)
    yield place
    shutil.rmtree(place)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become another user")
@pytest.mark.parametrize("path", [".", "ledger", "state/witness.json"])
def test_where_nothing_may_be_written_nothing_is_released(path: str, public: Path) -> None:
    (public / path).chmod(0o555 if path == "." else 0o444)
    code = RELEASE.format(before="os.setgid(65534); os.setuid(65534)", between="")
    told = said(code, public)
    assert told.startswith("refused:")
    assert "made" not in told


def test_a_full_disk_releases_nothing(folder: Path) -> None:
    """Files cannot grow: the ledger's log is an empty file then."""
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))"
    told = said(RELEASE.format(before="", between=limit), folder)
    assert told.startswith("refused:")
    assert "make room on the disk" in told
    assert "made" not in told
    assert opened(folder).spent() == pytest.approx(0.03)


def said(code: str, folder: Path) -> str:
    command = [sys.executable, "-B", "-c", code, str(folder)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": os.getcwd()}
    )
    assert not done.stderr, done.stderr
    return done.stdout


def test_every_refusal_is_one_of_state() -> None:
    assert issubclass(LedgerError, StateError)
