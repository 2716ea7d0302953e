"""SQLite file of a ledger: transactions, rows chained by hashes to detect changes, queries.

A query runs inside a transaction of the caller.
"""

import hashlib
import math
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, dataclass, field, replace
from datetime import UTC, datetime
from heapq import merge
from pathlib import Path
from sqlite3 import Connection
from typing import Literal
from urllib.parse import quote
from weakref import finalize

from common.errors import LedgerError, RefusedError, StateError
from common.files import check_format, sync_folder
from common.privacy.accounts import check_positive, parse_account
from common.privacy.claims import UNBOUNDED, LimitChange
from common.privacy.options import Unit

MARK = 0x6C6F6F6D
"""SQLite application id of a ledger."""

PLAIN, WITH_INCREASES, WITH_TRUST, WITH_CONTRACT = VERSIONS = (1, 2, 3, 4)
"""Values of `user_version`; a program that cannot read a version refuses the ledger.

A ledger gets version 2 when its budget is first raised, or first limited after releases, version 3 with its first release to
a secure sum, and version 4 with its first release under a contract.
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

CONTRACT = "ALTER TABLE releases ADD COLUMN contract TEXT NOT NULL DEFAULT ''"
"""Statement that adds the contract of a release (see `Terms.contract`)."""


MEMORY = ":memory:"
"""Path of a ledger that ends with the process, for simulations."""

BUSY_SECONDS = 10.0
"""Time to wait for another process that writes to the same ledger."""

EXCLUSIVE_SECONDS = 0.5
"""Time to wait for other processes to close the ledger, if exclusive access is needed."""


class LedgerDatabase:
    """Open ledger file.

    In `MEMORY`, a new ledger has the lineage, and `content` is that of an earlier one. With `alone`, no other process may have
    the file open, now or before it is closed.

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
        finalize(self, self._db.close).atexit = False  # Python 3.13 warns of databases left open

    @contextmanager
    def reading(self) -> Iterator[Connection]:
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
    def writing(self, durable: bool = True) -> Iterator[Connection]:
        """Open a transaction with no concurrent writer, which is undone if the block raises.

        A durable transaction survives a power cut.

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
        if marks[0] != MARK:
            raise LedgerError(f"{self.path} is not a privacy ledger; {_RESTORE}")
        try:
            check_format(self.path, marks[1], VERSIONS[-1])
        except StateError as error:
            raise LedgerError(f"{error}") from None
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
        with closing(_connect(draft)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript(f"{SCHEMA} INSERT INTO ledger VALUES ('{lineage}'); COMMIT;")
        os.link(draft, path)
        sync_folder(path.parent)
    except (OSError, sqlite3.Error) as error:
        if isinstance(error, FileExistsError) and path.exists():
            return
        raise LedgerError(f"cannot create the privacy ledger {path}: {error}; {_ELSEWHERE}") from None
    finally:
        with suppress(OSError):
            draft.unlink()


def _connect(path: Path | str, *, alone: bool = False) -> Connection:
    """Open an existing file, or memory, in autocommit mode: callers begin transactions."""
    name = MEMORY if path == MEMORY else f"file:{quote(str(path))}?mode=rw"
    db = sqlite3.connect(name, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True)
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


Status = Literal["reserved", "released"]
"""`reserved`: charged, but perhaps never sent, as after a crash; `released`: the bytes exist."""

PLAN = "plan"
"""Kind of an entry that charges all releases of a run; `DpSgdPlan` is its mechanism."""

LOCAL_TRUST = "local"
"""Trust of a release whose noise the client drew itself."""

MAX_NAME_LENGTH = 200
"""Maximum number of characters of a name in a slot; names come from the server."""


@dataclass(frozen=True)
class Slot:
    """Identity of a reply within a run; the same slot requested again gets the same reply."""

    run: str
    round: int
    phase: str = ""
    kind: str = "update"

    def __post_init__(self) -> None:
        named = self.run and all(len(name) <= MAX_NAME_LENGTH for name in (self.run, self.phase, self.kind))
        if not named or type(self.round) is not int or not 0 <= self.round < 2**62:
            raise RefusedError(
                f"privacy: invalid run, round, phase or kind of a reply; names have 1 to {MAX_NAME_LENGTH} characters"
            )


@dataclass(frozen=True)
class Terms:
    """Mechanism of a release and its cost."""

    unit: Unit
    mechanism: str
    neighbours: str
    """Neighbouring relation."""
    sensitivity: float
    noise: float
    """Noise scale: σ, or Laplace's b."""
    account: str
    cost: float
    trust: str = LOCAL_TRUST
    """`local`, or `helpers:` and 16 hexadecimal digits of the digest of the helpers' roster."""
    contract: str = field(default="", compare=False)
    """Hash of the contract under which the server asked; empty for none.

    A reply may be repeated under a later one.
    """

    def __post_init__(self) -> None:
        check_positive(sensitivity=self.sensitivity, noise=self.noise, cost=self.cost)


@dataclass(frozen=True)
class LedgerEntry:
    """Charged release."""

    sequence: int
    time: str
    """UTC by this machine's clock, for display alone."""
    slot: Slot
    terms: Terms
    status: Status
    link: str
    """SHA-256 over this row and the previous link."""

    def link_after(self, before: str) -> str:
        """Return the expected `link`, given the previous link, or the lineage for the first row.

        No contract, and then local trust, are left out, as in ledgers of earlier versions.
        """
        fields = (before, self.sequence, self.time, *astuple(self.slot), *astuple(self.terms))
        if not self.terms.contract:
            fields = fields[:-2] if self.terms.trust == LOCAL_TRUST else fields[:-1]
        return hashlib.sha256(repr(fields).encode()).hexdigest()


@dataclass(frozen=True)
class BudgetIncrease:
    """Increase of a unit's ε by the owner, or its first limit."""

    sequence: int
    """Number in one sequence with the releases."""
    unit: Unit
    raised: LimitChange
    link: str

    def link_after(self, before: str) -> str:
        """Return the expected `link`; its fields are fewer than an entry's, so neither replaces the other."""
        return hashlib.sha256(
            repr((before, self.sequence, "raise", self.unit, *astuple(self.raised))).encode()
        ).hexdigest()


def new_entry(sequence: int, before: str, slot: Slot, terms: Terms) -> LedgerEntry:
    """Return the entry of a release that is charged now; `before` is the previous link."""
    entry = LedgerEntry(sequence, _now(), slot, terms, "reserved", "")
    return replace(entry, link=entry.link_after(before))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


_COLUMNS = "sequence, time, run, round, phase, kind, unit, mechanism, neighbours, sensitivity, noise, account, cost"


def newest(db: Connection) -> tuple[int, str]:
    """Return sequence number and link of the newest row; (0, "") for an empty ledger."""
    last = "SELECT sequence, link FROM {} ORDER BY sequence DESC LIMIT 1"
    rows: list[tuple[int, str]] = [row for table in _chained_tables(db) for row in db.execute(last.format(table))]
    return max(rows, default=(0, ""))


def link_at(db: Connection, sequence: int) -> str:
    """Return the link of a row; empty if there is no such row."""
    same = "SELECT link FROM {} WHERE sequence = ?"
    links = [row[0] for table in _chained_tables(db) for row in db.execute(same.format(table), (sequence,))]
    return str(links[0]) if links else ""


def spent(db: Connection, unit: str, run: str = "", number: int | None = None, more: float = 0.0) -> float:
    """Sum the costs of a unit's releases and one more cost, rounded once.

    Without `run` or `number`, all runs or rounds count.
    """
    within = "unit = ? AND (? = '' OR run = ?) AND (? IS NULL OR round = ?)"
    costs = db.execute(f"SELECT cost FROM releases WHERE {within}", (unit, run, run, number, number))
    return math.fsum((more, *(cost for (cost,) in costs)))


def spent_by_unit(db: Connection) -> tuple[tuple[str, float], ...]:
    """Return the sum of costs of each unit, for display."""
    return tuple(db.execute("SELECT unit, SUM(cost) FROM releases GROUP BY unit ORDER BY unit"))


def count_releases(db: Connection, unit: str, run: str) -> int:
    """Return the number of a run's releases, repeated ones included."""
    where = "unit = ? AND run = ? AND kind != ?"
    return int(db.execute(f"SELECT COUNT(*) FROM releases WHERE {where}", (unit, run, PLAN)).fetchone()[0])


def charged(db: Connection, slot: Slot) -> list[tuple[int, Terms]]:
    """Return sequence numbers and terms of a slot's entries, oldest first."""
    where = "run = ? AND round = ? AND phase = ? AND kind = ? ORDER BY sequence"
    rows = db.execute(f"SELECT {_columns(db)} FROM releases WHERE {where}", tuple(vars(slot).values()))
    return [(int(row[0]), Terms(*row[6:])) for row in rows]


def insert(db: Connection, entry: LedgerEntry) -> None:
    """Insert an entry."""
    if entry.terms.contract or entry.terms.trust != LOCAL_TRUST:
        _upgrade(db, WITH_CONTRACT if entry.terms.contract else WITH_TRUST)
    columns = _columns(db)
    fields = (entry.sequence, entry.time, *vars(entry.slot).values(), *vars(entry.terms).values())
    values = (*fields[: columns.count(",") + 1], entry.status, entry.link)
    db.execute(f"INSERT INTO releases ({columns}, status, link) VALUES ({','.join('?' * len(values))})", values)


def mark_released(db: Connection, sequence: int) -> None:
    """Note that the bytes of an entry exist."""
    db.execute("UPDATE releases SET status = 'released' WHERE sequence = ? AND status != 'released'", (sequence,))


def insert_increase(db: Connection, lineage: str, unit: Unit, epsilon: tuple[float, float]) -> BudgetIncrease:
    """Change a unit's ε from the first to the second of these; return the row that says so."""
    sequence, before = newest(db)
    row = BudgetIncrease(sequence + 1, unit, LimitChange(_now(), *epsilon), "")
    row = replace(row, link=row.link_after(before or lineage))
    _upgrade(db, WITH_INCREASES)
    values = (row.sequence, row.raised.time, row.unit, row.raised.before, row.raised.epsilon, row.link)
    db.execute("INSERT INTO raises VALUES (?, ?, ?, ?, ?, ?)", values)
    db.execute("UPDATE accounts SET epsilon_now = ? WHERE unit = ?", (row.raised.epsilon, row.unit))
    return row


def increases(db: Connection) -> list[BudgetIncrease]:
    """Return all increases, and first limits after releases, oldest first."""
    if "raises" not in _chained_tables(db):
        return []
    rows = db.execute("SELECT sequence, unit, time, epsilon_before, epsilon, link FROM raises ORDER BY sequence")
    return [BudgetIncrease(row[0], row[1], LimitChange(*row[2:5]), row[5]) for row in rows]


def entries(db: Connection) -> Iterator[LedgerEntry]:
    """Yield all entries, oldest first."""
    for row in db.execute(f"SELECT {_columns(db)}, status, link FROM releases ORDER BY sequence"):
        yield LedgerEntry(row[0], row[1], Slot(*row[2:6]), Terms(*row[6:-2]), *row[-2:])


def verify(db: Connection, lineage: str) -> None:
    """Check the chain of links from the lineage to the newest row.

    Raises:
        LedgerError: A row was changed or is missing.
    """
    before = lineage
    rows: Iterator[LedgerEntry | BudgetIncrease] = merge(entries(db), increases(db), key=lambda row: row.sequence)
    try:
        for number, row in enumerate(rows, start=1):
            if row.sequence != number or row.link != row.link_after(before):
                raise LedgerError(
                    f"row {row.sequence} of the privacy ledger was altered; restore the ledger from a backup"
                )
            before = row.link
    except RefusedError as error:
        raise LedgerError(
            f"a row of the privacy ledger was altered ({error}); restore the ledger from a backup"
        ) from None


def _chained_tables(db: Connection) -> tuple[str, ...]:
    """Return the tables whose rows are numbered and chained together."""
    return ("releases",) if _version(db) == PLAIN else ("releases", "raises")


def _columns(db: Connection) -> str:
    """Return the columns of a release, in the order of the fields of `Slot` and `Terms`."""
    return _COLUMNS + {WITH_TRUST: ", trust", WITH_CONTRACT: ", trust, contract"}.get(_version(db), "")


def _version(db: Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _upgrade(db: Connection, version: int) -> None:
    """Add what that version of a ledger has more, if it is newer than the ledger."""
    before = _version(db)
    if before >= version:
        return
    db.execute(INCREASES)
    for added, statement in ((WITH_TRUST, TRUST), (WITH_CONTRACT, CONTRACT)):
        if before < added <= version:
            db.execute(statement)
    db.execute(f"PRAGMA user_version = {version}")


StoredAccount = tuple[str, float, float]
"""Name of the account, ε and δ."""


def accounts_in_force(db: Connection, lineage: str) -> dict[Unit, StoredAccount]:
    """Return the account of every unit with the limits of its last opening, or of its last increase.

    Raises:
        LedgerError: An account was altered.
    """
    now = {unit: limits for unit, *limits in db.execute("SELECT unit, epsilon_now, delta_now FROM accounts")}
    stored = original_accounts(db, lineage)
    return {unit: (name, min(e, now[unit][0]), min(d, now[unit][1])) for unit, (name, e, d) in stored.items()}


def original_accounts(db: Connection, lineage: str) -> dict[Unit, StoredAccount]:
    """Return the account of every unit as it was created, with the ε of its last increase.

    Raises:
        LedgerError: An account was altered.
    """
    accounts: dict[Unit, StoredAccount] = {}
    latest = {row.unit: row.raised.epsilon for row in increases(db)}
    for unit, name, epsilon, delta, link in db.execute("SELECT unit, account, epsilon, delta, link FROM accounts"):
        if link != _seal(lineage, unit, (name, epsilon, delta)):
            raise LedgerError(
                f"the privacy ledger's account of unit '{unit}' was altered; restore the ledger from a backup"
            )
        accounts[unit] = name, latest.get(unit, epsilon), delta
    return accounts


def open_account(db: Connection, lineage: str, unit: Unit, requested: StoredAccount) -> StoredAccount:
    """Return the account of a unit in force; create it as requested if it is new.

    Later ε and δ can be smaller than the original ones, never larger. Until the first release, another account can be
    chosen. The first limit of an account without one is permanent, if the releases until then keep to it.
    """
    seal = _seal(lineage, unit, requested)
    db.execute("INSERT OR IGNORE INTO accounts VALUES (?, ?, ?, ?, ?, ?, ?)", (unit, *requested, seal, *requested[1:]))
    name, epsilon, delta = original_accounts(db, lineage)[unit]
    unlimited, released = requested[1] < UNBOUNDED <= epsilon, unit in dict(spent_by_unit(db))
    if not released and (name != requested[0] or unlimited):
        account = requested[0], requested[1] if unlimited else epsilon, delta
        values = (*account, _seal(lineage, unit, account), unit)
        db.execute("UPDATE accounts SET account = ?, epsilon = ?, delta = ?, link = ? WHERE unit = ?", values)
    elif unlimited and spent(db, unit) <= parse_account(name).total(*requested[1:]):
        insert_increase(db, lineage, unit, (epsilon, requested[1]))
    if accounts_in_force(db, lineage)[unit][1:] != requested[1:]:
        limits = (*requested[1:], unit)
        db.execute("UPDATE accounts SET epsilon_now = ?, delta_now = ? WHERE unit = ?", limits)
    return accounts_in_force(db, lineage)[unit]


def account_name(db: Connection, unit: Unit) -> str:
    """Return the name of a unit's account."""
    return str(db.execute("SELECT account FROM accounts WHERE unit = ?", (unit,)).fetchone()[0])


def _seal(lineage: str, unit: str, account: StoredAccount) -> str:
    return hashlib.sha256(repr((lineage, unit, *account)).encode()).hexdigest()
