"""A ledger as an SQLite file: opening, transactions, and what to say when the file fails us.

Write-ahead log with `synchronous=FULL`: when a reservation returns it is on the disk, at the price of one fsync.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from client.privacy.ledger.schema import MARK, SCHEMA, VERSIONS
from common.errors import LedgerError
from common.files import sync_folder

MEMORY = ":memory:"
"""A ledger that ends with the process: for simulations."""

PATIENCE = 10.0
"""Seconds to wait for another process that writes to the same ledger."""

GLANCE = 0.5
"""Seconds to wait for others to close it, for who must be alone with it."""


class LedgerDatabase:
    """An open ledger file.

    Args:
        path: An existing ledger, or `MEMORY` with a lineage for a new one.
        lineage: Of a new one in memory.
        alone: Whether nobody else may have it open, now or before it is closed.

    Raises:
        LedgerError: The file is missing, damaged, no ledger, or held by another where it must not be.
    """

    def __init__(self, path: Path | str, lineage: str = "", *, alone: bool = False) -> None:
        self.path = path
        self._lock = threading.RLock()
        with self._told():
            self._db = _connect(path, alone=alone)
            try:
                self.lineage = self._begun(lineage)
            except BaseException:
                self._db.close()
                raise
        self._file = self._identity()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view.

        Raises:
            LedgerError: The file cannot be read.
        """
        with self._lock, self._told():
            self._db.execute("BEGIN")
            try:
                yield self._db
            finally:
                self._db.execute("ROLLBACK")

    @contextmanager
    def writing(self, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """A transaction that nobody else writes beside; undone if the block raises, on the disk when it is left.

        Args:
            durable: Whether it must outlive a power cut.

        Raises:
            LedgerError: The file is gone, locked, read-only or has no room; nothing was written.
        """
        with self._lock, self._told():
            if self._file != self._identity():
                raise LedgerError(
                    f"the privacy ledger {self.path} was taken away while in use; put it back and start again"
                )
            self._db.execute(f"PRAGMA synchronous = {'FULL' if durable or not self._logged else 'NORMAL'}")
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Fold the log into the file and let go of it."""
        with self._lock:
            self._db.close()

    def _begun(self, lineage: str) -> str:
        """The ledger's lineage."""
        if self.path == MEMORY:
            self._db.executescript(f"{SCHEMA} INSERT INTO ledger VALUES ('{lineage}'); COMMIT;")
        self._check()
        return str(self._db.execute("SELECT lineage FROM ledger").fetchone()[0])

    def _check(self) -> None:
        """Raises LedgerError, or sqlite3.Error, if the file is damaged or something else."""
        marks = tuple(self._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
        if marks not in tuple((MARK, version) for version in VERSIONS):
            raise LedgerError(f"{self.path} is no privacy ledger of this version of fedloom; {_RESTORE}")
        found = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise sqlite3.DatabaseError(found)
        self._logged = self._db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"

    def _identity(self) -> tuple[int, int]:
        """Which file the path names now; a connection would go on writing to one that was deleted."""
        if self.path == MEMORY:
            return 0, 0
        try:
            found = os.stat(self.path)
        except OSError:
            return -1, -1
        return found.st_dev, found.st_ino

    @contextmanager
    def _told(self) -> Iterator[None]:
        """SQLite's errors in our words."""
        try:
            yield
        except sqlite3.Error as error:
            raise LedgerError(f"privacy ledger {self.path}: {error}; {_advice(error)}. Nothing was released") from None


def create(path: Path, lineage: str) -> None:
    """Make an empty ledger, whole or not at all; if another process was faster, its ledger stays.

    Raises:
        LedgerError: It cannot be made there.
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft.unlink(missing_ok=True)
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        db = _connect(draft)
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(f"{SCHEMA} INSERT INTO ledger VALUES ('{lineage}'); COMMIT;")
        db.close()
        os.link(draft, path)
        sync_folder(path.parent)
    except (OSError, sqlite3.Error) as error:
        if isinstance(error, FileExistsError) and path.exists():
            return
        raise LedgerError(f"no privacy ledger can be made at {path}: {error}; {_ELSEWHERE}") from None
    finally:
        with suppress(OSError):
            draft.unlink()


def _connect(path: Path | str, *, alone: bool = False) -> sqlite3.Connection:
    """The file, which must exist, or memory; transactions are ours to begin."""
    name = MEMORY if path == MEMORY else f"file:{quote(str(path))}?mode=rw"
    db = sqlite3.connect(name, PATIENCE, isolation_level=None, check_same_thread=False, uri=True)
    try:
        if alone:  # who has a write-ahead log open shares a lock until it is closed, which this does not bear
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
            db.execute(f"PRAGMA busy_timeout = {round(1000 * GLANCE)}")
        db.execute("PRAGMA synchronous = FULL")
    except BaseException:
        db.close()
        raise
    return db


_RESTORE = "put the ledger back from a backup made with the data, or move it away and count its budget as spent"
_ELSEWHERE = "let this user write beside the data, or name another place for ledgers"


def _advice(error: sqlite3.Error) -> str:
    text = str(error)
    if "locked" in text or "busy" in text:
        return "another process is using it; stop that, or try again"
    if "readonly" in text or "unable to open" in text:
        return _ELSEWHERE
    return "make room on the disk" if "full" in text or "I/O" in text else _RESTORE
