"""Location of a data set's ledger, also after the data were copied, renamed or used by another client.

The ledger lies beside the data, so that a client with another name, key or state folder finds it. The owner's state folder
holds a roll-back record under the data's fingerprint. A copy of the data therefore finds the ledger, and its loss is detected.
"""

import hashlib
import os
import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from client.data.dataset import is_demo, split_test_file
from client.privacy.ledger.database import LedgerDatabase, create
from client.privacy.ledger.ledger import Ledger
from client.privacy.ledger.roll_back import LedgerHead, RollbackRecord, read_heads
from common.errors import LedgerError
from common.privacy.accounts import Account
from common.privacy.options import Unit

LINEAGES = "lineages"
"""Folder of roll-back records, and of the ledgers of generated data, in a state folder."""


def open_ledger(
    source: str,
    state_dir: Path,
    fingerprint: str,
    unit: Unit,
    account: Account,
    epsilon: float,
    delta: float,
    *,
    folder: Path | None = None,
    alone: bool = False,
) -> Ledger:
    """Open the ledger of these data; create it if they never had one.

    Unit, account, ε, δ and `alone` are those of `Ledger`. `folder` is that of new ledgers in place of the data's, as for data
    on a read-only disk.

    Raises:
        LedgerError: The data had a ledger which is gone, damaged or behind its record; nothing may be released.
    """
    record = RollbackRecord(rollback_path(state_dir, fingerprint), absolute_source(source))
    path = find_ledger(source, state_dir, fingerprint, folder)
    if not path.exists():
        create(path, secrets.token_hex(16))
    return Ledger(path, unit, account, epsilon, delta, record, alone=alone)


def find_ledger(source: str, state_dir: Path, fingerprint: str, folder: Path | None = None) -> Path:
    """Return the path of the ledger of these data, or the path at which to create it.

    Raises:
        LedgerError: The data had a ledger which is gone, or have two.
    """
    path = ledger_path(source, state_dir, fingerprint, folder)
    record = RollbackRecord(rollback_path(state_dir, fingerprint))
    head = record.read()
    if head is None:
        if not path.exists() and (other := _find_by_name(source, state_dir)):
            return other
        _refuse_if_replaced(path, state_dir)
        return path
    for candidate in (path, Path(head.ledger)):
        if _has_lineage(candidate, head.lineage):
            return candidate
    raise _missing_ledger(head, record, path)


def find_all_ledgers(folders: Iterable[Path]) -> Iterator[Path | LedgerError]:
    """Yield every ledger with a roll-back record in these folders, or the reason why it is unusable.

    Raises:
        LedgerError: A roll-back record is damaged.
    """
    by_lineage: dict[str, dict[str, tuple[RollbackRecord, LedgerHead]]] = defaultdict(dict)
    for record, head in read_heads(folders):
        by_lineage[head.lineage][head.ledger] = record, head
    for lineage, places in by_lineage.items():
        ledgers = [ledger for name in places if (ledger := _ledger_at(Path(name), lineage))]
        record, head = max(places.values(), key=lambda last: last[1].sequence)
        yield from ledgers or [_missing_ledger(head, record, Path(head.ledger))]


def ledger_path(source: str, state_dir: Path, fingerprint: str, folder: Path | None = None) -> Path:
    """Return `.NAME.fedloom-ledger` beside a file, or `.fedloom/ledger` in a folder.

    Ledgers of generated data are named by the data's fingerprint.
    In `folder`, the name depends on the data's path, so that an additional row does not lead to a new ledger.
    """
    if is_demo(source):
        return (folder or state_dir / LINEAGES).resolve() / f"{fingerprint}.fedloom-ledger"
    path = data_path(source).resolve()
    if folder:
        return folder.resolve() / f"{hashlib.sha256(bytes(path)).hexdigest()[:32]}.fedloom-ledger"
    return path / ".fedloom" / "ledger" if path.is_dir() else path.with_name(f".{path.name}.fedloom-ledger")


def data_path(source: str) -> Path:
    """Return the file or folder of a source, without its test file."""
    return split_test_file(source)[0]


def absolute_source(source: str) -> str:
    """Return the absolute path of the data with symbolic links unresolved; empty for generated data.

    Data that are later put behind the same link are recognized by it.
    """
    return "" if is_demo(source) else os.path.abspath(data_path(source))


def rollback_path(state_dir: Path, fingerprint: str) -> Path:
    """Return the path of the roll-back record of data with that fingerprint."""
    return state_dir / LINEAGES / f"{fingerprint}.json"


def _find_by_name(source: str, state_dir: Path) -> Path | None:
    """Return the ledger of data that had this path before they changed.

    Raises:
        LedgerError: That ledger is gone.
    """
    names = {absolute_source(source), str(data_path(source).resolve())}
    heads = [(r, head) for r, head in read_heads([state_dir / LINEAGES]) if not is_demo(source) and head.data in names]
    heads.sort(key=lambda pair: pair[1].sequence)
    present = [Path(head.ledger) for _, head in heads if _has_lineage(Path(head.ledger), head.lineage)]
    if heads and not present:
        record, head = heads[-1]
        raise _missing_ledger(head, record, Path(head.ledger))
    return present[-1] if present else None


def _refuse_if_replaced(path: Path, state_dir: Path) -> None:
    """Raise LedgerError if changed data, whose fingerprint is new, had another ledger at that path."""
    lineage = _lineage(path) if path.exists() else ""
    for left in (Path(f"{path}{suffix}") for suffix in ("-wal", "-kept")):
        if not lineage and left.exists():
            raise LedgerError(
                f"{left} belongs to a privacy ledger that is gone, so nothing is released; put {path} back"
            )
    for record, head in read_heads([state_dir / LINEAGES]):
        if head.ledger == str(path) and head.lineage != lineage:
            raise _missing_ledger(head, record, path)


def _lineage(path: Path) -> str:
    database = LedgerDatabase(path)
    database.close()
    return database.lineage


def _has_lineage(path: Path, lineage: str) -> bool:
    return path.exists() and _lineage(path) == lineage


def _ledger_at(path: Path, lineage: str) -> Path | LedgerError | None:
    """Return the path, if the ledger is there; after a move, it is at one of its paths only."""
    try:
        return path if _has_lineage(path, lineage) else None
    except LedgerError as error:
        return error


def _missing_ledger(head: LedgerHead, record: RollbackRecord, path: Path) -> LedgerError:
    other = f" and {path} is another ledger" if path.exists() else ""
    return LedgerError(
        f"the privacy ledger {head.ledger} of these data is gone{other}, so nothing is released; put it back. The owner of the"
        f" data can instead move {record.path} away; earlier releases are then no longer counted"
    )
