"""What a ledger says of itself, for its owner."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from client.privacy.ledger import queries
from client.privacy.ledger.database import LedgerDatabase
from client.privacy.ledger.queries import Opened
from client.privacy.ledger.records import BudgetIncrease, LedgerEntry
from client.privacy.ledger.verify import compare_all
from common.privacy.accounts import parse_account
from common.privacy.claims import NEIGHBOURS, SAME_ITEMS, UNBOUNDED, Claim
from common.privacy.options import Unit


@dataclass(frozen=True)
class RunSpent:
    """What one run spent."""

    run: str
    releases: int
    wasted: int
    """Paid, but perhaps never sent: a crash came between."""
    spent: float


@dataclass(frozen=True)
class Statement:
    """One account of a ledger."""

    ledger: str
    claim: Claim
    runs: tuple[RunSpent, ...]
    """In the order of their first release."""


def statements(path: Path, folders: Iterable[Path] = ()) -> list[Statement]:
    """Every account of a ledger; nothing is changed.

    Args:
        path: The ledger.
        folders: Of witnesses.

    Raises:
        LedgerError: The ledger is missing, damaged, or behind a witness.
    """
    book = LedgerDatabase(path)
    try:
        with book.reading() as db:
            compare_all(db, book, folders)
            queries.verify(db, book.lineage)
            accounts, made = queries.opened(db, book.lineage), queries.recorded(db, book.lineage)
            rows, raises = list(queries.rows(db)), queries.raises(db)
    finally:
        book.close()
    of_unit = {unit: [row for row in rows if row.terms.unit == unit] for unit in accounts}
    claims = {unit: claim_of(unit, accounts[unit], made[unit], rows, raises) for unit in accounts}
    return [Statement(str(path), claims[unit], by_run(of_unit[unit])) for unit in sorted(accounts)]


def claim_of(
    unit: Unit, opened: Opened, made: Opened, every: Sequence[LedgerEntry], raises: Sequence[BudgetIncrease]
) -> Claim:
    """The guarantee of an account, with those releases of a ledger, and those of `raises`, that are its own.

    Where more had left before the owner lowered what is `opened`, the guarantee is still that of the account as it was `made`.
    """
    name, epsilon, delta = opened
    rows = [row for row in every if row.terms.unit == unit]
    beside = tuple(sorted({row.terms.unit for row in every} - {unit}))
    account, spent = parse_account(name), math.fsum(row.terms.cost for row in rows)
    mechanisms = tuple(sorted({row.terms.mechanism for row in rows}))
    so_far = account.claim(spent, delta) if rows else 0.0
    total = account.total(epsilon, delta)
    if spent > total:
        _, epsilon, delta = made
    shown = any(row.terms.neighbours == SAME_ITEMS for row in rows)
    neighbours = SAME_ITEMS if shown else NEIGHBOURS[unit]
    reported_delta = delta if account.has_delta else 0.0
    raised = tuple(one.raised for one in raises if one.unit == unit)
    lowered = made[1] if rows and account.has_delta and epsilon < made[1] < UNBOUNDED else 0.0
    about = (unit, neighbours, mechanisms, name, epsilon, reported_delta, total, spent, so_far)
    return Claim(*about, raised, lowered, beside)


def by_run(rows: Sequence[LedgerEntry]) -> tuple[RunSpent, ...]:
    """What each run spent, in the order of their first release."""
    paid, wasted = Counter(row.slot.run for row in rows), Counter(r.slot.run for r in rows if r.status == "reserved")
    costs: dict[str, list[float]] = {run: [] for run in paid}
    for row in rows:
        costs[row.slot.run].append(row.terms.cost)
    return tuple(RunSpent(run, paid[run], wasted[run], math.fsum(costs[run])) for run in paid)
