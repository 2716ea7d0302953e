"""Book of a helper: its keys and the sums it has opened, on disk before any answer leaves.

The noise of an answer follows from its booked key, so the same request has the same answer. Another set is refused.
"""

import hashlib
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import RLock

from client.helper.book_file import BOOK, MEMORY, Head, open_file
from client.privacy.ledger.rollback import LedgerHead, RollbackRecord
from common.errors import RefusedError, StateError
from common.locks import HeldError, exclusive
from common.secure.canonical import canonical
from common.secure.terms import SumTerms
from common.text import printable

HOUR, DAY = 3_600.0, 86_400.0  # seconds


@dataclass(frozen=True)
class RunKeys:
    """Secret key and card of a helper in one run."""

    secret: bytes
    """Raw X25519 key; empty when the run is over."""
    card: str


class Book:
    """Keys and opened sums of one helper.

    Args:
        db: Open file, or memory.
        record: Roll-back record of the file; None in memory.
        clock: Seconds since 1970.
        release: Release of the folder's lock.
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

        Args:
            terms: Terms of the sum.
            members: Digest of the set: names, boxes and terms.
            clients: Number of clients in the set.
            draw: Source of a fresh key.

        Raises:
            RefusedError: The sum was opened for another set, or it is closed.
        """
        place = (terms.run, terms.round, terms.channel)
        with self._writing() as db:
            row = db.execute(f"SELECT members, noise_key FROM sums WHERE {_PLACE}", place).fetchone()
            if row and row[0] != members:
                raise RefusedError(f"the sum of round {terms.round} was opened for another set")
            if row and row[1]:
                return bytes(row[1])
            newest = db.execute(f"SELECT round FROM sums {_NEWEST}", place[::2]).fetchone()
            if row or (newest and newest[0] > terms.round):
                raise RefusedError(f"the sum of round {terms.round} is closed")
            key, now = draw(), self._clock()
            if newest:  # no earlier row has a key
                db.execute(f"UPDATE sums SET noise_key = NULL WHERE {_PLACE}", (terms.run, newest[0], terms.channel))
            db.execute(
                "INSERT INTO sums VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*place, terms.to_json(), members, key, clients, now),
            )
            self._advance(db, ["sums", *place, members])
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
                    head = Head(*self._db.execute("SELECT lineage, sequence, link FROM head").fetchone())
                    self._db.execute("COMMIT")
                except BaseException:
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise StateError(f"helper's file beside {self._path}: {error}; nothing was booked") from None
            if self._record and self._db.total_changes > before:
                self._record.write(LedgerHead(head.lineage, self._path, head.sequence, head.link))


def open_book(folder: Path, clock: Callable[[], float] = time.time) -> Book:
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
    return Book(db, record, clock, lock.close)


def book_in_memory() -> Book:
    """Return a book that ends with the process, for simulations."""
    return Book(open_file(MEMORY, None, "memory"))


_PLACE = "run = ? AND round = ? AND channel = ?"
_NEWEST = "WHERE run = ? AND channel = ? ORDER BY round DESC LIMIT 1"
