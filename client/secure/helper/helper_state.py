"""State of a helper: its keys and the sums it has opened, in an SQLite file before any answer leaves."""

import hashlib
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from weakref import finalize

from client.privacy.ledger.roll_back import LedgerHead, RollbackRecord
from common.errors import LedgerError, RefusedError, StateError
from common.files import HeldError, check_format, exclusive, sync_folder
from common.secure.terms import SumTerms, canonical
from common.text import printable

MEMORY = ":memory:"
"""Path of a book that ends with the process."""

BOOK = "helper.sqlite"
"""Name of the file in a state folder."""

MARK, VERSION = 0x666C6862, 1
"""`application_id` and `user_version` of the file."""

_SCHEMA = f"""
BEGIN;
PRAGMA application_id = {MARK};
PRAGMA user_version = {VERSION};
CREATE TABLE head (lineage TEXT NOT NULL, sequence INTEGER NOT NULL, link TEXT NOT NULL);
CREATE TABLE keys (run TEXT PRIMARY KEY, secret BLOB NOT NULL, card TEXT NOT NULL, time REAL NOT NULL);
CREATE TABLE sums (run TEXT, round INTEGER, channel TEXT, terms TEXT NOT NULL, members TEXT NOT NULL, noise_key BLOB,
  n INTEGER NOT NULL, time REAL NOT NULL, PRIMARY KEY (run, round, channel));
"""


def _head(db: sqlite3.Connection, path: Path | str) -> LedgerHead:
    """Return the state of the file after its newest entry."""
    lineage, sequence, link = db.execute("SELECT lineage, sequence, link FROM head").fetchone()
    return LedgerHead(lineage, str(path), sequence, link)


def open_file(path: Path | str, record: RollbackRecord | None, lineage: str) -> sqlite3.Connection:
    """Open the file of a book, created under `lineage` if it and its record are missing.

    Raises:
        StateError: The file is damaged, no such file, older than its record, or missing while the record is not.
    """
    try:
        seen = record.read() if record else None
    except LedgerError as error:
        raise StateError(f"{error}") from None
    try:
        if path != MEMORY and not Path(path).exists():
            if seen and seen.sequence:
                raise _older(path, seen.sequence, 0)
            _create(Path(path), lineage)
        db = _connect(path)
        try:
            if path == MEMORY:
                db.executescript(f"{_SCHEMA} INSERT INTO head VALUES ('{lineage}', 0, ''); COMMIT;")
            _check(db, path, record is not None, seen)
        except BaseException:
            db.close()
            raise
    except (OSError, sqlite3.Error) as error:
        raise StateError(f"cannot open the helper's file {path}: {error}; restore it or use another folder") from None
    return db


def _create(path: Path, lineage: str) -> None:
    """Create an empty file of its owner only, atomically."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    draft.unlink(missing_ok=True)
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    with closing(_connect(draft)) as db:
        db.executescript(f"{_SCHEMA} INSERT INTO head VALUES ('{lineage}', 0, ''); COMMIT;")
    draft.replace(path)
    sync_folder(path.parent)


def _connect(path: Path | str) -> sqlite3.Connection:
    """Open a file in autocommit mode; deleted keys are overwritten."""
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA secure_delete = ON")
    return db


def _check(db: sqlite3.Connection, path: Path | str, has_record: bool, seen: LedgerHead | None) -> None:
    """Compare a file with its roll-back record, which may be behind after a crash but never ahead.

    Raises:
        StateError: The file is no helper's file, of a newer program, or older than its record.
    """
    marks = tuple(db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    if marks[0] != MARK or db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
        raise StateError(f"{path} is damaged, or no helper's file; restore it or use another folder")
    check_format(path, marks[1], VERSION)
    head = _head(db, path)
    if not has_record:
        return
    if seen is None and head.sequence > 1:  # a crash can lose the record of the first entry only
        raise StateError(f"the roll-back record beside {path} is missing; put it back or use another folder")
    if seen and (seen.lineage != head.lineage or seen.sequence > head.sequence):
        raise _older(path, seen.sequence, head.sequence)
    if seen and seen.sequence == head.sequence and seen.link != head.link:
        raise StateError(f"{path} is not the file that its roll-back record names; restore the newest one")


def _older(path: Path | str, recorded: int, found: int) -> StateError:
    return StateError(
        f"{path} is older than this helper's last answer (entry {found} of {recorded}), for instance from a backup; restore"
        " the newest file, or use another folder: runs under way then need new helpers"
    )


HOUR, DAY = 3_600.0, 86_400.0  # seconds


@dataclass(frozen=True)
class RunKeys:
    """Secret key and card of a helper in one run."""

    secret: bytes
    """Raw X25519 key; empty when the run is over."""
    card: str


class HelperState:
    """Keys and opened sums of one helper.

    The clock has seconds since 1970; `release` ends the lock of the folder.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        record: RollbackRecord | None = None,
        clock: Callable[[], float] = time.time,
        release: Callable[[], None] = lambda: None,
    ) -> None:
        self._db, self._record, self._clock, self._release, self._lock = db, record, clock, release, RLock()
        self._path = str(record.path) if record else MEMORY
        finalize(self, db.close).atexit = False  # Python 3.13 warns of databases left open

    def keys(self, run: str, make: Callable[[], RunKeys]) -> RunKeys:
        """Return the keys of a run; those of a new run are made and stored.

        Raises:
            RefusedError: The run is over.
        """
        with self._writing() as db:
            found = self._find(db, run)
            if found is None:
                found = make()
                db.execute("INSERT INTO keys VALUES (?, ?, ?, ?)", (run, found.secret, found.card, self._clock()))
                self._advance(db, ["keys", run, found.card])
            return found

    def find_keys(self, run: str) -> RunKeys:
        """Return the keys of a run whose card was issued.

        Raises:
            RefusedError: There is no card, or the run is over.
        """
        with self._writing() as db:
            found = self._find(db, run)
        if found is None:
            raise RefusedError(f"this helper has no card of run '{printable(run, 80)}'; ask for one with query.helper")
        return found

    def enter(self, terms: SumTerms, members: str, clients: int, draw: Callable[[], bytes]) -> bytes:
        """Book the sum of a round and a channel; return the key of its noise.

        `members` is the digest of the set: names, boxes and terms. `draw` gives a fresh key.

        Raises:
            RefusedError: The sum was opened for another set, or it is closed.
        """
        sum_key = (terms.run, terms.round, terms.channel)
        with self._writing() as db:
            row = db.execute(f"SELECT members, noise_key FROM sums WHERE {_PLACE}", sum_key).fetchone()
            if row and row[0] != members:
                raise RefusedError(f"the sum of round {terms.round} was opened for another set")
            if row and row[1]:
                return bytes(row[1])
            newest = db.execute(f"SELECT round FROM sums {_NEWEST}", sum_key[::2]).fetchone()
            if row or (newest and newest[0] > terms.round):
                raise RefusedError(f"the sum of round {terms.round} is closed")
            key, now = draw(), self._clock()
            if newest:  # no earlier row has a key
                db.execute(f"UPDATE sums SET noise_key = NULL WHERE {_PLACE}", (terms.run, newest[0], terms.channel))
            db.execute(
                "INSERT INTO sums VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*sum_key, terms.to_json(), members, key, clients, now),
            )
            self._advance(db, ["sums", *sum_key, members])
            return key

    def end(self, run: str) -> None:
        """Delete the keys of a run that is over; its sums stay refused."""
        with self._writing() as db:
            rows = db.execute("SELECT run FROM keys WHERE secret != x'' AND run = ?", (run,)).fetchall()
            self._delete_keys(db, rows)

    def forget(self, days: float) -> list[str]:
        """Delete the keys of runs without a message for so many days; return their names."""
        with self._writing() as db:
            rows = db.execute(
                "SELECT run FROM keys WHERE secret != x'' AND time < ?", (self._clock() - days * DAY,)
            ).fetchall()
            self._delete_keys(db, rows)
            return [str(run) for (run,) in rows]

    def close(self) -> None:
        """Close the file and release its folder."""
        with self._lock:
            self._db.close()
            self._release()

    def _find(self, db: sqlite3.Connection, run: str) -> RunKeys | None:
        row, now = db.execute("SELECT secret, card FROM keys WHERE run = ?", (run,)).fetchone(), self._clock()
        if row and not row[0]:
            raise RefusedError(f"run '{printable(run, 80)}' is over here")
        db.execute("UPDATE keys SET time = ? WHERE run = ? AND time < ?", (now, run, now - HOUR))
        return RunKeys(*row) if row else None

    def _delete_keys(self, db: sqlite3.Connection, rows: list[tuple[str]]) -> None:
        for (run,) in rows:
            db.execute("UPDATE sums SET noise_key = NULL WHERE run = ?", (run,))
            db.execute("UPDATE keys SET secret = x'' WHERE run = ?", (run,))
            self._advance(db, ["over", run])

    def _advance(self, db: sqlite3.Connection, entry: list[str | int]) -> None:
        """Add an entry to the chain of the file."""
        sequence, link = db.execute("SELECT sequence, link FROM head").fetchone()
        linked = hashlib.sha256(canonical([link, sequence + 1, *entry])).hexdigest()
        db.execute("UPDATE head SET sequence = ?, link = ?", (sequence + 1, linked))

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction that is on disk when the block ends; raise StateError if it cannot be written."""
        with self._lock:
            before = self._db.total_changes
            try:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    yield self._db
                    head = _head(self._db, self._path)
                    self._db.execute("COMMIT")
                except BaseException:
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise StateError(f"helper's file beside {self._path}: {error}; nothing was booked") from None
            if self._record and self._db.total_changes > before:
                self._record.write(head)


def open_book(folder: Path, clock: Callable[[], float] = time.time) -> HelperState:
    """Open the book of a state folder, created if there is none.

    Raises:
        StateError: Another process has it open, or the file is damaged or older than its roll-back record.
    """
    record, lock = RollbackRecord(folder / "helper.json"), ExitStack()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock.enter_context(exclusive(folder / "helper.lock"))
        db = open_file(folder / BOOK, record, secrets.token_hex(16))
    except HeldError as error:
        raise StateError(f"{error} runs a helper in {folder}; stop it, or use another folder") from None
    except BaseException:
        lock.close()
        raise
    return HelperState(db, record, clock, lock.close)


def book_in_memory() -> HelperState:
    """Return a book that ends with the process, for simulations."""
    return HelperState(open_file(MEMORY, None, "memory"))


_PLACE = "run = ? AND round = ? AND channel = ?"
_NEWEST = "WHERE run = ? AND channel = ? ORDER BY round DESC LIMIT 1"
