"""Ledgers of versions 3 and 4: releases name their trust and their contract, and older chains stay valid."""

import sqlite3
from collections.abc import Callable
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


CONTRACT = "0123456789abcdef" * 4


def test_the_first_release_under_a_contract_makes_version_4_and_earlier_rows_stay_valid(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    spend(ledger, 0, 1)
    ledger.release(Slot("run", 1), _summed(ledger), Maker())
    before = [entry.link for entry in ledger.entries()]
    ledger.release(Slot("run", 2), replace(terms_of(ledger), contract=CONTRACT), Maker())
    ledger.release(Slot("run", 3), replace(_summed(ledger), contract=CONTRACT), Maker())
    ledger.close()
    again = opened(tmp_path)
    assert _version(tmp_path) == 4
    assert [entry.terms.contract for entry in again.entries()] == ["", "", CONTRACT, CONTRACT]
    assert [entry.terms.trust for entry in again.entries()] == ["local", TRUST, "local", TRUST]
    assert [entry.link for entry in again.entries()][:2] == before
    [statement] = read_statements(tmp_path / "ledger")
    assert [run.contracts for run in statement.runs] == [(CONTRACT,)]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE releases SET contract = '' WHERE sequence = 2",
        f"UPDATE releases SET contract = '{'f' * 64}' WHERE sequence = 2",
        f"UPDATE releases SET contract = '{CONTRACT}' WHERE sequence = 1",
        "PRAGMA user_version = 3",
        "PRAGMA user_version = 5",
    ],
)
def test_an_altered_contract_is_noticed(tmp_path: Path, change: str) -> None:
    ledger = opened(tmp_path)
    spend(ledger, 0, 1)
    ledger.release(Slot("run", 1), replace(terms_of(ledger), contract=CONTRACT), Maker())
    ledger.close()
    _execute(tmp_path, change)
    with pytest.raises(LedgerError):
        opened(tmp_path)


@pytest.mark.parametrize("first", ["raise", "sum", "contract"])
def test_a_ledger_gets_a_contract_after_or_before_raise_and_sum(tmp_path: Path, first: str) -> None:
    steps = {
        "raise": lambda: increase_budget(tmp_path / "ledger", 2 * EPSILON, record_of(tmp_path)),
        "sum": lambda: _release(tmp_path, 1, _summed),
        "contract": lambda: _release(tmp_path, 2, lambda ledger: replace(terms_of(ledger), contract=CONTRACT)),
    }
    opened(tmp_path).close()
    for name in (first, *(one for one in steps if one != first)):
        steps[name]()
    assert _version(tmp_path) == 4
    found = {(entry.terms.trust, entry.terms.contract) for entry in opened(tmp_path, epsilon=2 * EPSILON).entries()}
    assert found == {(TRUST, ""), ("local", CONTRACT)}


def _release(folder: Path, number: int, make: Callable[[Ledger], Terms]) -> None:
    ledger = opened(folder)
    ledger.release(Slot("run", number), make(ledger), Maker())
    ledger.close()
