"""A ledger beside what witnesses remember of it, inside a transaction of the caller's."""

from collections.abc import Iterable
from pathlib import Path
from sqlite3 import Connection

from client.privacy.ledger import queries
from client.privacy.ledger.database import LedgerDatabase
from client.privacy.ledger.rollback import LedgerHead, RollbackRecord, sightings
from common.errors import LedgerError


def compare(db: Connection, book: LedgerDatabase, witness: RollbackRecord | None) -> None:
    """Accept a file that has all that the witness has seen.

    Raises:
        LedgerError: It lacks some of it.
    """
    if witness and (seen := witness.read()):
        _check(db, book, witness, seen)


def check(db: Connection, book: LedgerDatabase, witness: RollbackRecord | None) -> None:
    """Accept a file that is opened: its links hold, and it has all that the witness and those beside it have seen.

    Raises:
        LedgerError: It was altered, or lacks some of it.
    """
    queries.verify(db, book.lineage)
    compare(db, book, witness)
    compare_all(db, book, [witness.path.parent] if witness else [])


def compare_all(db: Connection, book: LedgerDatabase, folders: Iterable[Path]) -> None:
    """Accept a file that has all that was ever seen of it, whatever fingerprint its data had then.

    Witnesses run behind a ledger at work, so the file is to be looked at after them: not before, in the same transaction.

    Args:
        db: The ledger.
        book: The same.
        folders: Of witnesses.

    Raises:
        LedgerError: It lacks some of it, or a witness is damaged.
    """
    for witness, seen in sightings(folders):
        if seen.lineage == book.lineage:
            _check(db, book, witness, seen)


def sighting(db: Connection, book: LedgerDatabase) -> LedgerHead:
    """What a witness is to remember."""
    return LedgerHead(book.lineage, str(book.path), *queries.newest(db), queries.spent_by_unit(db))


def _check(db: Connection, book: LedgerDatabase, witness: RollbackRecord, seen: LedgerHead) -> None:
    if (seen.lineage, seen.link) != (book.lineage, queries.link_at(db, seen.sequence)):
        raise LedgerError(
            f"privacy ledger {book.path} lacks releases that {witness.path} has seen: "
            "it is an older copy, or another ledger. Put the newest back; nothing was released"
        )
