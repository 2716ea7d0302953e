"""Claims of a ledger, for its owner."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from client.privacy.ledger import database as queries
from client.privacy.ledger.database import (
    LOCAL_TRUST,
    PLAN,
    BudgetIncrease,
    LedgerDatabase,
    LedgerEntry,
    StoredAccount,
    accounts_in_force,
    original_accounts,
)
from client.privacy.ledger.roll_back import check_all_heads
from common.privacy.accounts import parse_account
from common.privacy.claims import NEIGHBOURS, SAME_ITEMS, UNBOUNDED, Claim
from common.privacy.options import Unit


@dataclass(frozen=True)
class RunSpent:
    """Amount that one run spent."""

    run: str
    releases: int
    wasted: int
    """Releases that were charged but perhaps never sent, because of a crash."""
    spent: float
    trust: tuple[str, ...] = (LOCAL_TRUST,)
    """Trusts of the run's releases, in alphabetical order."""
    contracts: tuple[str, ...] = ()
    """Hashes of the contracts of the run's releases, in alphabetical order."""


@dataclass(frozen=True)
class Statement:
    """Privacy statement of one account of a ledger."""

    ledger: str
    claim: Claim
    runs: tuple[RunSpent, ...]
    """Runs in the order of their first release."""


def read_statements(path: Path, folders: Iterable[Path] = ()) -> list[Statement]:
    """Return the statements of all accounts of a ledger, without changing it.

    The folders are those of roll-back records.

    Raises:
        LedgerError: The ledger is missing, damaged, or behind a roll-back record.
    """
    database = LedgerDatabase(path)
    try:
        with database.reading() as db:
            check_all_heads(db, database, folders)
            queries.verify(db, database.lineage)
            accounts, originals = accounts_in_force(db, database.lineage), original_accounts(db, database.lineage)
            entries, increases = list(queries.entries(db)), queries.increases(db)
    finally:
        database.close()
    of_unit = {unit: [entry for entry in entries if entry.terms.unit == unit] for unit in accounts}
    claims = {unit: claim_of(unit, accounts[unit], originals[unit], entries, increases) for unit in accounts}
    return [Statement(str(path), claims[unit], spent_by_run(of_unit[unit])) for unit in sorted(accounts)]


def claim_of(
    unit: Unit,
    in_force: StoredAccount,
    original: StoredAccount,
    entries: Sequence[LedgerEntry],
    increases: Sequence[BudgetIncrease],
) -> Claim:
    """Return the claim of a unit, from all entries and increases of its ledger.

    If more was spent than the account in force allows, because the owner lowered it, the claim is that of the original
    account.
    """
    name, epsilon, delta = in_force
    charged = [entry for entry in entries if entry.terms.unit == unit]
    account, spent = parse_account(name), math.fsum(entry.terms.cost for entry in charged)
    so_far = account.claim(spent, delta) if charged else 0.0
    total = account.total(epsilon, delta)
    if spent > total:
        _, epsilon, delta = original
    names_items = any(entry.terms.neighbours == SAME_ITEMS for entry in charged)
    local = [entry.terms.cost for entry in charged if entry.terms.trust == LOCAL_TRUST]
    lowered = original[1] if charged and account.has_delta and epsilon < original[1] < UNBOUNDED else 0.0
    return Claim(
        unit=unit,
        neighbours=SAME_ITEMS if names_items else NEIGHBOURS[unit],
        mechanisms=tuple(sorted({entry.terms.mechanism for entry in charged})),
        account=name,
        epsilon=epsilon,
        delta=delta if account.has_delta else 0.0,
        total=total,
        spent=spent,
        epsilon_so_far=so_far,
        raises=tuple(row.raised for row in increases if row.unit == unit),
        lowered_from=lowered,
        beside=tuple(sorted({entry.terms.unit for entry in entries} - {unit})),
        local_epsilon=(account.claim(math.fsum(local), delta) if local else 0.0) if len(local) < len(charged) else None,
    )


def spent_by_run(entries: Sequence[LedgerEntry]) -> tuple[RunSpent, ...]:
    """Return the amount that each run spent, in the order of their first release."""
    by_run: dict[str, list[LedgerEntry]] = {}
    for entry in entries:
        by_run.setdefault(entry.slot.run, []).append(entry)
    return tuple(
        RunSpent(
            run,
            releases=sum(entry.slot.kind != PLAN for entry in of_run),
            wasted=sum(entry.status == "reserved" for entry in of_run),
            spent=math.fsum(entry.terms.cost for entry in of_run),
            trust=tuple(sorted({entry.terms.trust for entry in of_run})),
            contracts=tuple(sorted({entry.terms.contract for entry in of_run} - {""})),
        )
        for run, of_run in by_run.items()
    )
