"""Comparison of a ledger with its roll-back records, inside a transaction of the caller."""

from collections.abc import Iterable
from pathlib import Path
from sqlite3 import Connection

from client.privacy.ledger import queries
from client.privacy.ledger.database import LedgerDatabase
from client.privacy.ledger.rollback import LedgerHead, RollbackRecord, read_heads
from common.errors import LedgerError


def check_head(db: Connection, database: LedgerDatabase, record: RollbackRecord | None) -> None:
    """Accept a ledger that contains the head of its roll-back record.

    Raises:
        LedgerError: The ledger lacks the head's row.
    """
    if record and (head := record.read()):
        _check_contains(db, database, record, head)


def check_on_opening(db: Connection, database: LedgerDatabase, record: RollbackRecord | None) -> None:
    """Accept a ledger whose links hold and that contains all heads in the record's folder.

    Raises:
        LedgerError: The ledger was altered, or lacks the row of a head.
    """
    queries.verify(db, database.lineage)
    check_head(db, database, record)
    check_all_heads(db, database, [record.path.parent] if record else [])


def check_all_heads(db: Connection, database: LedgerDatabase, folders: Iterable[Path]) -> None:
    """Accept a ledger that contains all its heads, whatever the fingerprint of its data was at that time.

    Records fall behind a ledger in use. They are therefore read before the transaction's first query, which fixes its view.

    Args:
        db: Ledger in a transaction without a query yet, or in a write transaction.
        database: The same ledger.
        folders: Folders of roll-back records.

    Raises:
        LedgerError: The ledger lacks the row of a head, or a record is damaged.
    """
    for record, head in read_heads(folders):
        if head.lineage == database.lineage:
            _check_contains(db, database, record, head)


def current_head(db: Connection, database: LedgerDatabase) -> LedgerHead:
    """Return the head to store in the roll-back record."""
    return LedgerHead(database.lineage, str(database.path), *queries.newest(db), queries.spent_by_unit(db))


def _check_contains(db: Connection, database: LedgerDatabase, record: RollbackRecord, head: LedgerHead) -> None:
    if (head.lineage, head.link) != (database.lineage, queries.link_at(db, head.sequence)):
        raise LedgerError(
            f"privacy ledger {database.path} lacks releases in the roll-back record {record.path}: it is an older copy, or"
            " another ledger; nothing was released; restore the newest copy"
        )
