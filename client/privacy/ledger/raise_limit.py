"""Raising what may be spent of a data set's privacy: the owner's word, on the owner's machine; no message asks for it.

A row in the ledger's chain says when, and from what to what. The client obeys the smaller of the ledger and the policy file.
"""

from collections.abc import Iterator
from pathlib import Path
from sqlite3 import Connection

from client.privacy.ledger import queries
from client.privacy.ledger.database import LedgerDatabase
from client.privacy.ledger.queries import Opened
from client.privacy.ledger.records import BudgetIncrease
from client.privacy.ledger.rollback import RollbackRecord
from client.privacy.ledger.verify import check, sighting
from common.errors import ConfigError
from common.privacy.accounts import parse_account
from common.privacy.claims import UNBOUNDED
from common.privacy.options import Unit


def increase_budget(path: Path, epsilon: float, witness: RollbackRecord | None = None) -> tuple[BudgetIncrease, ...]:
    """Let ε of everything ever released from these data be larger, in every account of the ledger where it is smaller.

    Args:
        path: The ledger, which nobody else has open.
        epsilon: The new ε; δ stays.
        witness: What the owner remembers of the ledger.

    Returns:
        What was written down.

    Raises:
        ConfigError: That would raise nothing; nothing was changed.
        LedgerError: The ledger is missing, damaged, behind its witness, or held by a client at work; nothing was changed.
    """
    book = LedgerDatabase(path, alone=True)
    try:
        with book.writing() as db:
            check(db, book, witness)
            written = tuple(_raised(db, book.lineage, epsilon))
            seen = sighting(db, book)
    finally:
        book.close()
    if witness:
        witness.write(seen)
    return written


def _raised(db: Connection, lineage: str, epsilon: float) -> Iterator[BudgetIncrease]:
    """Write a row for each account that allows less."""
    limits = queries.recorded(db, lineage)
    for unit, (name, _, delta) in queries.opened(db, lineage).items():
        _check(db, unit, (name, epsilon, delta))
    smaller = {unit: limit for unit, (_, limit, _) in sorted(limits.items()) if limit < epsilon}
    if not smaller:
        raise ConfigError(_unraised(epsilon, [limit for _, limit, _ in limits.values()]))
    for unit, limit in smaller.items():
        row = queries.next_raise(db, lineage, unit, (limit, epsilon))
        queries.insert_raise(db, row)
        yield row


def _check(db: Connection, unit: Unit, wished: Opened) -> None:
    """Raises ConfigError if an account would hold less than was spent, or as good as no limit."""
    name, epsilon, delta = wished
    if not 0 < epsilon < UNBOUNDED:
        raise ConfigError(f"ε = {epsilon:g} is no limit; say a positive number below {UNBOUNDED:g}")
    account, spent = parse_account(name), queries.spent(db, unit)
    if spent > account.total(epsilon, delta):
        so_far = account.claim(spent, delta)
        raise ConfigError(
            f"ε = {epsilon:g} is less than what was spent under unit {unit}, which comes to ε = {so_far:.4g}"
        )


def _unraised(epsilon: float, limits: list[float]) -> str:
    if not limits:
        return "nothing was ever spent of these data, so nothing is fixed; say max-epsilon in the policy file"
    least = min(limits)
    allowed = f"ε = {least:g}" if least < UNBOUNDED else "any ε"
    return (
        f"the ledger already allows {allowed}, and ε = {epsilon:g} would not raise that; "
        "to lower a limit, say a smaller max-epsilon in the policy file"
    )
