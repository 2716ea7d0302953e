"""Privacy ledgers of simulated clients as one file, which is written before the server has a reply."""

import hashlib
import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from client.privacy.ledger.ledger import LedgerCopy
from common.errors import LedgerError, StateError
from common.files import sync_folder
from common.privacy.options import Unit
from deploy.simulation.clients import SharedStore

FILE = "ledgers.sqlite"
MARK = 0x666C736C  # application id of the file

_SCHEMA = f"""
PRAGMA application_id = {MARK};
CREATE TABLE run (name TEXT NOT NULL);
CREATE TABLE ledgers (client INTEGER, unit TEXT, sequence INTEGER, content BLOB, digest BLOB, PRIMARY KEY (client, unit));
CREATE TABLE cached (client INTEGER, unit TEXT, sequence INTEGER, content BLOB, digest BLOB);
CREATE INDEX place ON cached (client, unit);
CREATE TABLE noise (client INTEGER PRIMARY KEY, drawn INTEGER);
"""


class LedgerFile:
    """Copy of all clients' ledgers, with the replies that a repeated round sends again.

    Args:
        folder: Folder of the run's snapshots.
        run: Name of the run.
        stores: Each client's state, with its ledgers.
    """

    def __init__(self, folder: Path, run: str, stores: Sequence[SharedStore]) -> None:
        self.path, self._run, self._stores = folder / FILE, run, stores
        self._written: dict[tuple[int, Unit], int] = {}
        self._drawn: dict[int, int] = {}

    @property
    def releases(self) -> int:
        """Number of releases in the file."""
        return sum(self._written.values())

    def commit(self) -> None:
        """Write the ledgers with new releases durably.

        Raises:
            LedgerError: The file cannot be written.
        """
        for k, drawn in self._drawn.items():  # replies that were sent again drew no noise
            if noise := self._stores[k].noise:
                noise.drawn = max(noise.drawn, drawn)
        self._drawn = {}
        found = {(k, unit): n for k, store in enumerate(self._stores) for unit, n in store.ledgers.sequences().items()}
        if new := {place: n for place, n in found.items() if n != self._written.get(place, 0)}:
            with self._writing() as db:
                for place, sequence in new.items():
                    self._write(db, *place, sequence)
            self._written |= new

    def restore(self, at_least: int) -> None:
        """Continue the ledgers in the file; without one, clients must not have released anything.

        Args:
            at_least: Number of releases that the file must hold.

        Raises:
            StateError: The file is missing, a link, damaged, older, or of another run or other clients.
        """
        copies = self._read() if os.path.lexists(self.path) else {}
        if len(self._stores) <= max((k for k, _ in copies), default=-1):
            raise StateError(f"{self.path} is of another set of clients")
        if self.releases < at_least:
            raise StateError(f"{self.path} is missing, or an older copy: it has {self.releases} of {at_least} releases")
        by_client: dict[int, dict[Unit, LedgerCopy]] = defaultdict(dict)
        for (k, unit), copy in copies.items():
            by_client[k][unit] = copy
        for k, own in by_client.items():
            self._stores[k].ledgers.restore(own)

    def _read(self) -> dict[tuple[int, Unit], LedgerCopy]:
        if self.path.is_symlink():
            raise StateError(f"{self.path} is a link")
        try:
            with closing(self._connect()) as db:
                [(verdict,)], [(name,)] = db.execute("PRAGMA quick_check(1)"), db.execute("SELECT name FROM run")
                if verdict != "ok":
                    raise sqlite3.DatabaseError(verdict)
                if name != self._run:
                    raise StateError(f"{self.path} is of another run")
                cached: dict[tuple[int, Unit], dict[int, bytes]] = defaultdict(dict)
                for k, unit, sequence, content, digest in db.execute("SELECT * FROM cached"):
                    cached[k, unit][sequence] = self._checked(content, digest)
                rows = list(db.execute("SELECT * FROM ledgers"))
                self._written = {(k, unit): sequence for k, unit, sequence, _, _ in rows}
                self._drawn = dict(db.execute("SELECT * FROM noise"))
                return {(k, u): LedgerCopy(self._checked(*stored), cached[k, u]) for k, u, _, *stored in rows}
        except (sqlite3.Error, ValueError) as error:
            raise StateError(f"{self.path} is damaged ({error})") from None

    def _checked(self, content: bytes, digest: bytes) -> bytes:
        if hashlib.sha256(content).digest() != digest:
            raise StateError(f"{self.path} is damaged: a ledger does not match its digest")
        return content

    def _write(self, db: sqlite3.Connection, k: int, unit: Unit, sequence: int) -> None:
        def stored(content: bytes) -> tuple[bytes, bytes]:
            return content, hashlib.sha256(content).digest()

        store, copy = self._stores[k], self._stores[k].ledgers.copy(unit)
        db.execute("REPLACE INTO ledgers VALUES (?, ?, ?, ?, ?)", (k, unit, sequence, *stored(copy.content)))
        db.execute("DELETE FROM cached WHERE client = ? AND unit = ?", (k, unit))
        rows = [(k, unit, n, *stored(content)) for n, content in copy.cached.items()]
        db.executemany("INSERT INTO cached VALUES (?, ?, ?, ?, ?)", rows)
        if store.noise:
            db.execute("REPLACE INTO noise VALUES (?, ?)", (k, store.noise.drawn))

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction that is on disk when the block ends; the first one creates the file."""
        try:
            if not self.path.exists():
                self._create()
            with closing(self._connect()) as db, db:
                yield db
        except (OSError, sqlite3.Error) as error:
            raise LedgerError(f"{self.path}: {error}; nothing was released; free disk space, then --resume") from None

    def _create(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self.path.with_suffix(".part")
        draft.unlink(missing_ok=True)
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(sqlite3.connect(draft)) as db:
            db.executescript(_SCHEMA)
            db.execute("INSERT INTO run VALUES (?)", (self._run,))
            db.commit()
        draft.rename(self.path)
        sync_folder(self.path.parent)

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=rw", uri=True)
        if db.execute("PRAGMA application_id").fetchone() != (MARK,):
            db.close()
            raise sqlite3.DatabaseError("no file of ledgers")
        return db
