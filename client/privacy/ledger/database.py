"""SQLite file of a ledger: tables, transactions, errors, and bytes of the last releases."""

import hashlib
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from common.errors import LedgerError
from common.files import sync_folder

MARK = 0x6C6F6F6D
"""SQLite application id of a ledger."""

PLAIN, WITH_INCREASES, WITH_TRUST = VERSIONS = (1, 2, 3)
"""Values of `user_version`; a program that cannot read a version refuses the ledger.

A ledger gets version 2 when its budget is first raised, or first limited after releases, and version 3 with its first
release to a secure sum.
"""

SCHEMA = f"""
BEGIN;
PRAGMA application_id = {MARK};
PRAGMA user_version = {PLAIN};
CREATE TABLE ledger (lineage TEXT NOT NULL);
CREATE TABLE accounts (
  unit TEXT PRIMARY KEY, account TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, link TEXT NOT NULL,
  epsilon_now REAL NOT NULL, delta_now REAL NOT NULL
) STRICT;
CREATE TABLE releases (
  sequence INTEGER PRIMARY KEY, time TEXT NOT NULL,
  run TEXT NOT NULL, round INTEGER NOT NULL, phase TEXT NOT NULL, kind TEXT NOT NULL,
  unit TEXT NOT NULL, mechanism TEXT NOT NULL, neighbours TEXT NOT NULL, sensitivity REAL NOT NULL, noise REAL NOT NULL,
  account TEXT NOT NULL, cost REAL NOT NULL CHECK (cost > 0), status TEXT NOT NULL, link TEXT NOT NULL
) STRICT;
CREATE INDEX slots ON releases (run, round, phase, kind);
"""
"""Statements that create a ledger; the transaction is left open."""

INCREASES = (
    "CREATE TABLE IF NOT EXISTS raises (sequence INTEGER PRIMARY KEY, time TEXT NOT NULL, unit TEXT NOT NULL,"
    " epsilon_before REAL NOT NULL, epsilon REAL NOT NULL CHECK (epsilon != epsilon_before), link TEXT NOT NULL) STRICT"
)
"""Statement that adds the table of budget increases.

Its rows are numbered and chained together with those of `releases`.
"""

TRUST = "ALTER TABLE releases ADD COLUMN trust TEXT NOT NULL DEFAULT 'local'"
"""Statement that adds the trust of a release (see `Terms.trust`)."""


MEMORY = ":memory:"
"""Path of a ledger that ends with the process, for simulations."""

BUSY_SECONDS = 10.0
"""Time to wait for another process that writes to the same ledger."""

EXCLUSIVE_SECONDS = 0.5
"""Time to wait for other processes to close the ledger, if exclusive access is needed."""


class LedgerDatabase:
    """Open ledger file.

    Args:
        path: Existing ledger, or `MEMORY` with a lineage for a new one.
        lineage: Random identifier of a new ledger in memory.
        content: Content of an earlier ledger, for `MEMORY`; empty for a new one.
        alone: True for exclusive access: no other process may have it open, now or before it is closed.

    Raises:
        LedgerError: The file is missing, damaged, not a ledger, or open in another process despite `alone`.
    """

    def __init__(self, path: Path | str, lineage: str = "", *, alone: bool = False, content: bytes = b"") -> None:
        self.path = path
        self._lock = threading.RLock()
        with self._translate_errors():
            self._db = _connect(path, alone=alone)
            try:
                self.lineage = self._read_lineage(lineage, content)
            except BaseException:
                self._db.close()
                raise
        self._file = self._identity()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Open one consistent view.

        Raises:
            LedgerError: The file cannot be read.
        """
        with self._lock, self._translate_errors():
            self._db.execute("BEGIN")
            try:
                yield self._db
            finally:
                self._db.execute("ROLLBACK")

    @contextmanager
    def writing(self, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Open a transaction with no concurrent writer, which is undone if the block raises.

        Args:
            durable: True if the transaction must survive a power cut.

        Raises:
            LedgerError: The file is gone, locked, read-only or has no room; nothing was written.
        """
        with self._lock, self._translate_errors():
            if self._file != self._identity():
                raise LedgerError(
                    f"privacy ledger {self.path} was removed or replaced while in use; put it back and restart the client"
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
        """Fold the log into the file and close it."""
        with self._lock:
            self._db.close()

    def content(self) -> bytes:
        """Return the content of a ledger in memory."""
        with self._lock:
            return self._db.serialize()

    def _read_lineage(self, lineage: str, content: bytes) -> str:
        """Return the ledger's lineage; create or restore the tables of a ledger in memory."""
        if content:
            self._db.deserialize(content)
        elif self.path == MEMORY:
            self._db.executescript(f"{SCHEMA} INSERT INTO ledger VALUES ('{lineage}'); COMMIT;")
        self._check()
        return str(self._db.execute("SELECT lineage FROM ledger").fetchone()[0])

    def _check(self) -> None:
        """Raise LedgerError or sqlite3.Error if the file is damaged or not a ledger."""
        marks = tuple(self._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
        if marks not in tuple((MARK, version) for version in VERSIONS):
            raise LedgerError(f"{self.path} is not a privacy ledger of this version of fedloom; {_RESTORE}")
        verdict = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
        self._logged = self._db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"

    def _identity(self) -> tuple[int, int]:
        """Return device and inode of the path: a connection would continue to write to a deleted file."""
        if self.path == MEMORY:
            return 0, 0
        try:
            status = os.stat(self.path)
        except OSError:
            return -1, -1
        return status.st_dev, status.st_ino

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise LedgerError with advice in place of errors of SQLite."""
        try:
            yield
        except sqlite3.Error as error:
            raise LedgerError(f"privacy ledger {self.path}: {error}; nothing was released; {_advice(error)}") from None


def create(path: Path, lineage: str) -> None:
    """Create an empty ledger atomically; a ledger that another process created first is left as it is.

    Raises:
        LedgerError: The file cannot be created.
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
        raise LedgerError(f"cannot create the privacy ledger {path}: {error}; {_ELSEWHERE}") from None
    finally:
        with suppress(OSError):
            draft.unlink()


def _connect(path: Path | str, *, alone: bool = False) -> sqlite3.Connection:
    """Open an existing file, or memory, in autocommit mode: callers begin transactions."""
    name = MEMORY if path == MEMORY else f"file:{quote(str(path))}?mode=rw"
    db = sqlite3.connect(name, BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True)
    try:
        if alone:  # every process with an open write-ahead log holds a shared lock, which excludes this mode
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
            db.execute(f"PRAGMA busy_timeout = {round(1000 * EXCLUSIVE_SECONDS)}")
        db.execute("PRAGMA synchronous = FULL")
    except BaseException:
        db.close()
        raise
    return db


_RESTORE = "restore the ledger from a backup made with the data, or move it away and count its budget as spent"
_ELSEWHERE = "make the data's folder writable for this user, or set another folder for ledgers"


def _advice(error: sqlite3.Error) -> str:
    text = str(error)
    if "locked" in text or "busy" in text:
        return "another process is using it: stop that process, or try again"
    if "readonly" in text or "unable to open" in text:
        return _ELSEWHERE
    return "free disk space" if "full" in text or "I/O" in text else _RESTORE


class ReplayCache(Protocol):
    """Released bytes by the sequence number of their ledger entry."""

    def put(self, sequence: int, content: bytes) -> None:
        """Store the bytes of an entry."""

    def get(self, sequence: int) -> bytes | None:
        """Return the bytes of an entry; None if they are not stored, or damaged."""

    def drop(self, sequences: Iterable[int]) -> None:
        """Delete the bytes of these entries, if they are stored."""


class MemoryReplayCache:
    """Replay cache that ends with the process, for simulations."""

    def __init__(self, contents: Mapping[int, bytes]) -> None:
        self._contents = dict(contents)

    def put(self, sequence: int, content: bytes) -> None:
        """See `ReplayCache`."""
        self._contents[sequence] = content

    def get(self, sequence: int) -> bytes | None:
        """See `ReplayCache`."""
        return self._contents.get(sequence)

    def drop(self, sequences: Iterable[int]) -> None:
        """See `ReplayCache`."""
        for sequence in sequences:
            self._contents.pop(sequence, None)


class DiskReplayCache:
    """Replay cache in files `<folder>/<sequence>`: SHA-256 of the bytes, then the bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, sequence: int, content: bytes) -> None:
        """See `ReplayCache`.

        Raises:
            LedgerError: The file cannot be written.
        """
        try:
            self.folder.mkdir(exist_ok=True, mode=0o700)
            self._path(sequence).write_bytes(hashlib.sha256(content).digest() + content)
        except OSError as error:
            raise LedgerError(
                f"cannot write {error.filename or self.folder}: {error.strerror}; free disk space for released bytes"
            ) from None

    def get(self, sequence: int) -> bytes | None:
        """See `ReplayCache`."""
        try:
            stored = self._path(sequence).read_bytes()
        except OSError:
            return None
        digest, content = stored[:32], stored[32:]
        return content if hashlib.sha256(content).digest() == digest else None

    def drop(self, sequences: Iterable[int]) -> None:
        """See `ReplayCache`."""
        with suppress(OSError):  # a file that stays behind does no harm
            for name in {path.name for path in self.folder.iterdir()} & {str(sequence) for sequence in sequences}:
                (self.folder / name).unlink()

    def _path(self, sequence: int) -> Path:
        return self.folder / str(sequence)


@dataclass(frozen=True)
class LedgerCopy:
    """Copy of a ledger in memory."""

    content: bytes
    """Content of its database."""
    cached: Mapping[int, bytes] = field(default_factory=dict)
    """Sequence number -> cached bytes."""


def open_storage(place: Path | str | LedgerCopy) -> tuple[LedgerDatabase, ReplayCache]:
    """Open an existing ledger, a new one in `MEMORY`, or a copy.

    Raises:
        LedgerError: The ledger is missing or damaged.
    """
    if isinstance(place, LedgerCopy):
        return LedgerDatabase(MEMORY, content=place.content), MemoryReplayCache(place.cached)
    cache = MemoryReplayCache({}) if place == MEMORY else DiskReplayCache(Path(f"{place}-kept"))
    return LedgerDatabase(place, secrets.token_hex(16)), cache


def copy_storage(database: LedgerDatabase, cache: ReplayCache) -> LedgerCopy:
    """Return a copy of a ledger in memory."""
    with database.reading() as db:
        sequences = [n for (n,) in db.execute("SELECT sequence FROM releases")]
    return LedgerCopy(database.content(), {n: content for n in sequences if (content := cache.get(n)) is not None})
