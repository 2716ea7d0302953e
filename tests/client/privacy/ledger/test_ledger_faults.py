"""A ledger that is missing, damaged, locked, read-only or out of room: nothing is released, and the error says why."""

import datetime
import math
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.privacy.ledger import database
from client.privacy.ledger.database import MEMORY, Slot, Terms
from client.privacy.ledger.ledger import Ledger
from common.errors import LedgerError, RefusedError, StateError
from common.privacy.accounts import Account, Pure, Rdp, Zcdp
from common.privacy.mechanisms import Gaussian
from common.privacy.options import Unit
from tests.support.ledgers import DELTA, Maker, opened, refuses, spend, terms_of


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
from common.privacy.options import Unit
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


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.rename(path.with_name("moved"))])
def test_a_ledger_that_is_removed_while_open_is_detected(damage: Callable[[Path], None], folder: Path) -> None:
    ledger = opened(folder)
    damage(folder / "ledger")
    with pytest.raises(LedgerError, match="was removed or replaced while in use"):
        spend(ledger, 5, 6)


@pytest.mark.parametrize("place", ["", "0"])
def test_cached_bytes_that_are_damaged_are_charged_again(place: str, folder: Path) -> None:
    (folder / "ledger-kept" / "1").write_bytes(place.encode() * 40)
    ledger = opened(folder)
    assert ledger.release(Slot("run", 0), ledger.terms(Gaussian(0.01, 1.0)), lambda: b"new noise") == b"new noise"
    assert ledger.spent() == pytest.approx(0.04)


def test_every_refusal_is_one_of_state() -> None:
    assert issubclass(LedgerError, StateError)


def test_a_row_says_everything_about_a_release(ledger: Ledger) -> None:
    ledger.release(Slot("run", 4, "second", "update"), ledger.terms(Gaussian(0.5, 1.0)), Maker())
    [row] = ledger.entries()
    assert row.slot == Slot("run", 4, "second", "update")
    assert row.terms == Terms("client", "gaussian", "replace-one", 2.0, 2.0, "zcdp", 0.5)
    assert (row.sequence, row.status) == (1, "released")
    assert datetime.datetime.fromisoformat(row.time).utcoffset() == datetime.timedelta(0)


def test_a_clock_that_goes_backwards_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    years = iter((2030, 1999, 2024))

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return datetime.datetime(next(years), 1, 1, tzinfo=tz)

    monkeypatch.setattr(database, "datetime", Clock)
    ledger = opened(tmp_path)
    for number in range(3):
        ledger.release(Slot("run", number), terms_of(ledger), Maker())
    again = opened(tmp_path)
    assert [row.time[:4] for row in again.entries()] == ["2030", "1999", "2024"]
    assert again.spent() == pytest.approx(0.3 * ledger.total)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Slot("", 1),
        lambda: Slot("run", -1),
        lambda: Slot("run", 2**62),
        lambda: Slot("run", True),
        lambda: Slot("run", cast(Any, 1.0)),
        lambda: Slot("r" * 201, 1),
        lambda: Terms("client", "gaussian", "replace-one", math.nan, 1.0, "zcdp", 1.0),
        lambda: Terms("client", "gaussian", "replace-one", 1.0, 0.0, "zcdp", 1.0),
    ],
)
def test_a_slot_or_terms_without_sense_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(RefusedError, match="privacy"):
        make()


COSTS = st.one_of(
    st.sampled_from([0.0, -1.0, math.nan, math.inf, -math.inf, 1e308, 5e-324]),
    st.floats(1e-9, 2.0),
    st.floats(),
)

ASKED = st.tuples(
    st.sampled_from(["a", "b"]),
    st.integers(0, 3),
    st.sampled_from(["client", "record"]),
    st.sampled_from(["zcdp", "pure", "rdp-4"]),
    COSTS,
    st.sampled_from(["release", "crash", "acknowledge", "reopen"]),
)


@given(st.sampled_from([Zcdp(), Pure(), Rdp(4)]), st.lists(ASKED, max_size=40), st.floats(0.1, 20))
def test_no_caller_can_spend_more_than_the_budget(
    account: Account, asked: list[tuple[str, int, Unit, str, float, str]], epsilon: float
) -> None:
    """Replays, other arms, other units and accounts, absurd costs, crashes: what was sent was paid, within the total."""
    ledger, make = Ledger(MEMORY, "client", account, epsilon, DELTA), Maker()
    sent: dict[bytes, float] = {}

    def crash() -> bytes:
        raise InterruptedError

    for run, number, unit, name, cost, what in asked:
        before = ledger.spent()
        try:
            if what == "acknowledge":
                ledger.acknowledge(run, number)
                continue
            terms = Terms(unit, "gaussian", "replace-one", 2.0, 1.0, name, cost)
            sent[ledger.release(Slot(run, number), terms, crash if what == "crash" else make)] = cost
        except RefusedError:
            assert ledger.spent() == before
        except InterruptedError:
            assert ledger.spent() >= before
        assert math.fsum(sent.values()) <= ledger.spent() <= ledger.total
