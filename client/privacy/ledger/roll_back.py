"""Heads of ledgers outside the ledgers, which reveal deletion, roll-back and replacement."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from sqlite3 import Connection

from client.privacy.ledger import database as queries
from client.privacy.ledger.database import LedgerDatabase
from common.errors import LedgerError
from common.files import write_atomically

SIZE = 2048
"""Fixed size of a record in bytes.

One write within one page overwrites it in place, so it is never torn.
"""


@dataclass(frozen=True)
class LedgerHead:
    """State of a ledger after its newest row."""

    lineage: str
    ledger: str
    """Path of the ledger at that time."""
    sequence: int = 0
    """Sequence number of the newest row."""
    link: str = ""
    """Link of the newest row."""
    spent: tuple[tuple[str, float], ...] = ()
    """Sum of costs by unit."""
    data: str = ""
    """Path of the data at that time."""

    @property
    def public(self) -> str:
        """Part that servers may see, `lineage:sequence:link`."""
        return f"{self.lineage}:{self.sequence}:{self.link}"


@dataclass(frozen=True)
class RollbackRecord:
    """File `<state>/lineages/<fingerprint of the data>.json`.

    It is written after each charge, without fsync. A record may therefore fall behind its ledger, which is harmless. It is
    never ahead of the ledger. Readers, which do not write, need no path of the data.
    """

    path: Path
    data: str = ""

    def read(self) -> LedgerHead | None:
        """Return the stored head; None if the data never had a ledger.

        Raises:
            LedgerError: The record is damaged.
        """
        try:
            fields = json.loads(self.path.read_bytes())
            spent = tuple((str(unit), float(amount)) for unit, amount in fields.pop("spent"))
            return LedgerHead(**fields, spent=spent)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise LedgerError(
                f"cannot read the roll-back record {self.path} ({error}); move it away once `fedloom budget --data DATA "
                "--state NEW-FOLDER` shows all that was spent"
            ) from None

    def write(self, head: LedgerHead) -> None:
        """Replace the stored head.

        Raises:
            LedgerError: The file cannot be written.
        """
        content = json.dumps({**asdict(head), "data": self.data}).encode().ljust(SIZE)
        try:
            if len(content) > SIZE or not self.path.exists():
                self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                write_atomically(self.path, content, mode=0o600)
                return
            handle = os.open(self.path, os.O_WRONLY)
            try:
                os.pwrite(handle, content, 0)
            finally:
                os.close(handle)
        except OSError as error:
            raise LedgerError(
                f"cannot write {self.path}: {error.strerror}; nothing was released; make it writable for this user"
            ) from None


def read_heads(folders: Iterable[Path]) -> list[tuple[RollbackRecord, LedgerHead]]:
    """Return all roll-back records in these folders with their heads.

    Raises:
        LedgerError: A record is damaged.
    """
    records = [RollbackRecord(path) for folder in folders for path in sorted(folder.glob("*.json"))]
    return [(replace(record, data=head.data), head) for record in records if (head := record.read())]


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

    Records fall behind a ledger in use. They are therefore read before the transaction's first query, which fixes its view. The
    transaction has no query yet, or is a write transaction.

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
