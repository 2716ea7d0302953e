"""Ledgers that were made when zCDP was converted by the closed form: no claim grows, and their room does."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from client.privacy.claim import read_statements
from client.privacy.ledger.database import PLAIN, Slot, Terms, create, new_entry
from client.privacy.ledger.ledger import Ledger
from common.errors import RefusedError
from common.privacy.accounts import rho_of
from tests.support.accountants import closed_epsilon, closed_rho
from tests.support.ledgers import Maker, opened, terms_of

LINEAGE, RELEASES = "lineage", 4
PLACE = "sequence, time, run, round, phase, kind"
TERMS = "unit, mechanism, neighbours, sensitivity, noise, account, cost"
"""Columns of a release of version 1."""


def older_ledger(folder: Path, epsilon: float, delta: float, share: float) -> Path:
    """Write a ledger of version 1 that has spent a share of what its (ε, δ) allowed by the closed form."""
    create(path := folder / "ledger", LINEAGE)
    account = ("client", "zcdp", epsilon, delta)
    seal = hashlib.sha256(repr((LINEAGE, *account)).encode()).hexdigest()
    cost, before = share * closed_rho(epsilon, delta) / RELEASES, LINEAGE
    with closing(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO accounts VALUES (?, ?, ?, ?, ?, ?, ?)", (*account, seal, epsilon, delta))
        for number in range(RELEASES):
            terms = Terms("client", "gaussian", "replace-one", 2.0, 2.0 / (2 * cost) ** 0.5, "zcdp", cost)
            entry = new_entry(number + 1, before, Slot("earlier", number), terms)
            before, values = entry.link, (*vars(entry.slot).values(), *[*vars(terms).values()][:-2])
            row = (entry.sequence, entry.time, *values, "released", entry.link)
            marks = ",".join("?" * len(row))
            db.execute(f"INSERT INTO releases ({PLACE}, {TERMS}, status, link) VALUES ({marks})", row)
        db.commit()
        assert db.execute("PRAGMA user_version").fetchone() == (PLAIN,)
    return path


@pytest.mark.parametrize("share", [1.0, 0.5, 0.01])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (8.0, 1e-5), (10.0, 1e-7)])
def test_an_older_ledger_claims_no_more_and_has_no_less_room(
    epsilon: float, delta: float, share: float, tmp_path: Path
) -> None:
    path = older_ledger(tmp_path, epsilon, delta, share)
    spent = share * closed_rho(epsilon, delta)
    ledger = opened(tmp_path, epsilon=epsilon, delta=delta)
    claim = ledger.claim()
    assert (claim.epsilon, claim.delta) == (epsilon, delta)
    assert claim.spent == pytest.approx(spent)
    assert 0 < claim.epsilon_so_far <= closed_epsilon(spent, delta)
    assert ledger.remaining() == claim.left >= closed_rho(epsilon, delta) - spent
    assert claim.total == rho_of(epsilon, delta) > closed_rho(epsilon, delta)
    assert [one.claim for one in read_statements(path)] == [claim]


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_the_room_of_an_older_ledger_is_spent_within_its_promise(share: float, tmp_path: Path) -> None:
    older_ledger(tmp_path, 8.0, 1e-5, share)
    ledger = opened(tmp_path, epsilon=8.0)
    room = ledger.remaining() / ledger.total
    assert spend_share(ledger, 1, 0.999 * room) == b"1"
    with pytest.raises(RefusedError, match="privacy budget"):
        spend_share(ledger, 2, 0.01 * room)
    claim = ledger.claim()
    assert claim.epsilon_so_far <= claim.epsilon == 8.0
    assert claim.spent <= rho_of(8.0, 1e-5)


def spend_share(ledger: Ledger, number: int, share: float) -> bytes:
    """Release once at a share of the ledger's total."""
    return ledger.release(Slot("run", number), terms_of(ledger, share), Maker())
