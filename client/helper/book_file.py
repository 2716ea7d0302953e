"""SQLite file of a helper's book: creation, and comparison with its roll-back record."""

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from client.privacy.ledger.rollback import LedgerHead, RollbackRecord
from common.errors import LedgerError, StateError
from common.files import sync_folder

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


@dataclass(frozen=True)
class Head:
    """State of the file after its newest entry."""

    lineage: str
    sequence: int
    link: str


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
        StateError: The file is no helper's file of this version, or older than its record.
    """
    marks = tuple(db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    if marks != (MARK, VERSION) or db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
        raise StateError(f"{path} is damaged, or no helper's file of this version; restore it or use another folder")
    head = Head(*db.execute("SELECT lineage, sequence, link FROM head").fetchone())
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
