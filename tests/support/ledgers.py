"""Ledgers on disk for tests, and makers of released bytes."""

from pathlib import Path

import pytest

from client.data.dataset import fingerprint
from client.privacy.ledger.database import Slot, Terms, create
from client.privacy.ledger.ledger import Ledger
from client.privacy.ledger.locate import open_ledger
from client.privacy.ledger.roll_back import RollbackRecord
from common.errors import LedgerError
from common.privacy.accounts import Account, Zcdp
from common.privacy.mechanisms import Gaussian
from common.privacy.options import Unit

EPSILON, DELTA = 10.0, 1e-5


def record_of(folder: Path) -> RollbackRecord:
    return RollbackRecord(folder / "state" / "record.json")


def opened(
    folder: Path, account: Account | None = None, epsilon: float = EPSILON, delta: float = DELTA, unit: Unit = "client"
) -> Ledger:
    """Return the ledger of a folder, created if there is none."""
    path = folder / "ledger"
    if not path.exists():
        create(path, "lineage")
    return Ledger(path, unit, account or Zcdp(), epsilon, delta, record_of(folder))


def terms_of(ledger: Ledger, share: float = 0.1) -> Terms:
    """Return the terms of Gaussian noise at a share of the ledger's total."""
    return ledger.terms(Gaussian(share * ledger.total, 1.0))


def spend(ledger: Ledger, start: int, stop: int) -> None:
    """Release some rounds at ρ = 0.01 each."""
    for number in range(start, stop):
        ledger.release(Slot("run", number), ledger.terms(Gaussian(0.01, 1.0)), lambda: b"noise")


class Maker:
    """Maker of different bytes at each call."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> bytes:
        self.made += 1
        return str(self.made).encode()


def ledger_of(source: Path | str, state: Path, **options: Path) -> Ledger:
    """Return the ledger of a source, found or created."""
    mark = fingerprint(str(source), (0, 1), 0)
    return open_ledger(str(source), state, mark, "client", Zcdp(), EPSILON, DELTA, **options)


def spend_on(source: Path | str, state: Path, number: int = 1, **options: Path) -> Path:
    """Release once at ρ = 0.1 and close; return the path of the ledger."""
    ledger = ledger_of(source, state, **options)
    ledger.release(Slot("run", number), ledger.terms(Gaussian(0.1, 1.0)), lambda: b"noise")
    ledger.close()
    return ledger.path


def refuses(folder: Path, match: str) -> None:
    """Neither opens nor releases."""
    made: list[int] = []

    def make() -> bytes:
        made.append(1)
        return b"noise"

    with pytest.raises(LedgerError, match=match):
        opened(folder).release(Slot("run", 9), opened(folder).terms(Gaussian(0.01, 1.0)), make)
    assert not made
