"""Ledgers of version 3: releases to secure sums name their trust, and older chains stay valid."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from client.privacy.claim import read_statements
from client.privacy.ledger.database import Slot, Terms
from client.privacy.ledger.ledger import Ledger, increase_budget
from common.errors import LedgerError, RefusedError
from tests.support.ledgers import EPSILON, Maker, opened, record_of, spend, terms_of

TRUST = "helpers:0123456789abcdef"


def _summed(ledger: Ledger, share: float = 0.1) -> Terms:
    return replace(terms_of(ledger, share), trust=TRUST)


def _execute(folder: Path, statement: str) -> list[tuple[int]]:
    with closing(sqlite3.connect(folder / "ledger")) as db:
        rows = db.execute(statement).fetchall()
        db.commit()
        return rows


def _version(folder: Path) -> int:
    return _execute(folder, "PRAGMA user_version")[0][0]


def test_the_first_release_to_a_sum_makes_version_3_and_earlier_rows_stay_valid(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    spend(ledger, 0, 2)
    assert _version(tmp_path) == 1
    before = [entry.link for entry in ledger.entries()]
    ledger.release(Slot("run", 2), _summed(ledger), Maker())
    spend(ledger, 3, 4)
    ledger.close()
    again = opened(tmp_path)
    assert _version(tmp_path) == 3
    assert [entry.terms.trust for entry in again.entries()] == ["local", "local", TRUST, "local"]
    assert [entry.link for entry in again.entries()][:2] == before
    assert [s.claim.unit for s in read_statements(tmp_path / "ledger")] == ["client"]


def test_the_same_slot_under_another_trust_is_refused(tmp_path: Path) -> None:
    ledger, slot = opened(tmp_path), Slot("run", 1)
    ledger.release(slot, _summed(ledger), Maker())
    with pytest.raises(RefusedError, match="other terms"):
        ledger.release(slot, terms_of(ledger), Maker())
    assert ledger.release(slot, _summed(ledger), Maker()) == b"1"


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE releases SET trust = 'local' WHERE sequence = 2",
        "UPDATE releases SET trust = 'helpers:ffffffffffffffff' WHERE sequence = 1",
        "PRAGMA user_version = 2",
        "PRAGMA user_version = 4",
    ],
)
def test_an_altered_trust_or_version_is_noticed(tmp_path: Path, change: str) -> None:
    ledger = opened(tmp_path)
    spend(ledger, 0, 1)
    ledger.release(Slot("run", 2), _summed(ledger), Maker())
    ledger.close()
    _execute(tmp_path, change)
    with pytest.raises(LedgerError):
        opened(tmp_path)


@pytest.mark.parametrize("sum_first", [True, False])
def test_a_ledger_holds_a_raise_and_a_sum_in_either_order(sum_first: bool, tmp_path: Path) -> None:
    for adds_sum in (sum_first, not sum_first):
        ledger = opened(tmp_path)
        if adds_sum:
            ledger.release(Slot("run", 1), _summed(ledger), Maker())
        ledger.close()
        if not adds_sum:
            increase_budget(tmp_path / "ledger", 2 * EPSILON, record_of(tmp_path))
    assert _version(tmp_path) == 3
    ledger = opened(tmp_path, epsilon=2 * EPSILON)
    assert ledger.epsilon == 2 * EPSILON
    assert [entry.terms.trust for entry in ledger.entries()] == [TRUST]
