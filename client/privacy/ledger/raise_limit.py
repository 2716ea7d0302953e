"""Increase of a ledger's budget by the owner, on the owner's machine; no message can request it.

A row in the ledger's chain states time, old and new ε. The client stops at the smaller of the ledger's and the policy's limit.
"""

from collections.abc import Iterator
from pathlib import Path
from sqlite3 import Connection

from client.privacy.ledger import queries
from client.privacy.ledger.accounts import StoredAccount, accounts_in_force, original_accounts
from client.privacy.ledger.database import LedgerDatabase
from client.privacy.ledger.records import BudgetIncrease
from client.privacy.ledger.rollback import RollbackRecord
from client.privacy.ledger.verify import check_on_opening, current_head
from common.errors import ConfigError
from common.privacy.accounts import parse_account
from common.privacy.claims import UNBOUNDED
from common.privacy.options import Unit


def increase_budget(path: Path, epsilon: float, record: RollbackRecord | None = None) -> tuple[BudgetIncrease, ...]:
    """Raise ε of all releases from these data, in every account of the ledger where it is smaller.

    Args:
        path: Ledger, which no other process has open.
        epsilon: New ε; δ is unchanged.
        record: Roll-back record of the ledger.

    Returns:
        The rows that were inserted.

    Raises:
        ConfigError: No account has a smaller ε; nothing was changed.
        LedgerError: The ledger is missing, damaged, behind its roll-back record, or open in a client; nothing was changed.
    """
    database = LedgerDatabase(path, alone=True)
    try:
        with database.writing() as db:
            check_on_opening(db, database, record)
            rows = tuple(_insert_increases(db, database.lineage, epsilon))
            head = current_head(db, database)
    finally:
        database.close()
    if record:
        record.write(head)
    return rows


def _insert_increases(db: Connection, lineage: str, epsilon: float) -> Iterator[BudgetIncrease]:
    """Insert a row for each account with a smaller ε."""
    limits = original_accounts(db, lineage)
    for unit, (name, _, delta) in accounts_in_force(db, lineage).items():
        _check(db, unit, (name, epsilon, delta))
    smaller = {unit: limit for unit, (_, limit, _) in sorted(limits.items()) if limit < epsilon}
    if not smaller:
        raise ConfigError(_explain_no_increase(epsilon, [limit for _, limit, _ in limits.values()]))
    for unit, limit in smaller.items():
        row = queries.next_increase(db, lineage, unit, (limit, epsilon))
        queries.insert_increase(db, row)
        yield row


def _check(db: Connection, unit: Unit, requested: StoredAccount) -> None:
    """Raise ConfigError if ε is below the spent ε, or so large that it is no limit."""
    name, epsilon, delta = requested
    if not 0 < epsilon < UNBOUNDED:
        raise ConfigError(f"ε = {epsilon:g} is not a valid limit; choose a positive number below {UNBOUNDED:g}")
    account, spent = parse_account(name), queries.spent(db, unit)
    if spent > account.total(epsilon, delta):
        raise ConfigError(
            f"ε = {epsilon:g} is below ε = {account.claim(spent, delta):.4g}, which was spent under unit {unit}; choose a"
            " larger one"
        )


def _explain_no_increase(epsilon: float, limits: list[float]) -> str:
    if not limits:
        return "these data have no releases, so no limit is stored; set max-epsilon in the policy file"
    least = min(limits)
    allowed = f"ε = {least:g}" if least < UNBOUNDED else "any ε"
    return (
        f"the ledger already allows {allowed}, so ε = {epsilon:g} is no increase; "
        "to lower a limit, set a smaller max-epsilon in the policy file"
    )
