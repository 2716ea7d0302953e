"""A ledger that is missing, damaged or removed: nothing is released, and the error says why."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from client.privacy.ledger.database import Slot
from common.errors import LedgerError, StateError
from common.privacy.mechanisms import Gaussian
from tests.support.ledgers import opened, refuses, spend


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
