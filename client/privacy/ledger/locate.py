"""Where the ledger of a data set lies, and how it is found again after the data were copied, renamed or given to a new client.

It lies beside the data, so that another client name, key or state folder finds it; the owner's state folder holds a witness
under the data's fingerprint, so that a copy of the data elsewhere finds it too, and its loss is noticed.
"""

import hashlib
import os
import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from client.data.sources import and_test, is_demo
from client.privacy.ledger.database import LedgerDatabase, create
from client.privacy.ledger.ledger import Ledger
from client.privacy.ledger.rollback import LedgerHead, RollbackRecord, sightings
from common.errors import LedgerError
from common.privacy.accounts import Account
from common.privacy.options import Unit

LINEAGES = "lineages"
"""Folder of witnesses, and of the ledgers of made data, in a state folder."""


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
    """The ledger of these data, made if they never had one.

    Args:
        source: A data file or folder, or embedded data.
        state_dir: The owner's state folder.
        fingerprint: Of the data.
        unit: Whose data are hidden.
        account: What to count in, if the unit is new to the ledger.
        epsilon: ε of everything ever released; the owner's choice, not a server's.
        delta: δ that goes with it.
        folder: Where new ledgers go instead of beside the data, as where those lie on a read-only disk.
        alone: Whether ε is that of everything, whatever the unit.

    Raises:
        LedgerError: The data had a ledger which is gone, damaged or behind; nothing may be released.
    """
    witness = RollbackRecord(witness_path(state_dir, fingerprint), named(source))
    path = find_ledger(source, state_dir, fingerprint, folder)
    if not path.exists():
        create(path, secrets.token_hex(16))
    return Ledger(path, unit, account, epsilon, delta, witness, alone=alone)


def find_ledger(source: str, state_dir: Path, fingerprint: str, folder: Path | None = None) -> Path:
    """Where the ledger of these data is, or is to be made.

    Raises:
        LedgerError: They had one which is gone, or have two.
    """
    path = ledger_path(source, state_dir, fingerprint, folder)
    seen = RollbackRecord(witness_path(state_dir, fingerprint)).read()
    if seen is None:
        if not path.exists() and (called := _called(source, state_dir)):
            return called
        _refuse_if_known(path, state_dir)
        return path
    for place in (path, Path(seen.ledger)):
        if _holds(place, seen.lineage):
            return place
    raise _gone(seen, RollbackRecord(witness_path(state_dir, fingerprint)), path)


def known_ledgers(folders: Iterable[Path]) -> Iterator[Path | LedgerError]:
    """Where every ledger is that witnesses in these folders have seen, or what is wrong with it.

    Raises:
        LedgerError: A witness is damaged.
    """
    seen_at: dict[str, dict[str, tuple[RollbackRecord, LedgerHead]]] = defaultdict(dict)
    for witness, seen in sightings(folders):
        seen_at[seen.lineage][seen.ledger] = witness, seen
    for lineage, places in seen_at.items():
        found = [here for place in places if (here := _standing(Path(place), lineage))]
        witness, seen = max(places.values(), key=lambda last: last[1].sequence)
        yield from found or [_gone(seen, witness, Path(seen.ledger))]


def ledger_path(source: str, state_dir: Path, fingerprint: str, folder: Path | None = None) -> Path:
    """Beside a file `.NAME.fedloom-ledger`, in a folder `.fedloom/ledger`; of made data by fingerprint.

    In `folder` by the data's path, so that a row more brings no new ledger.
    """
    if is_demo(source):
        return (folder or state_dir / LINEAGES).resolve() / f"{fingerprint}.fedloom-ledger"
    path = data_path(source).resolve()
    if folder:
        return folder.resolve() / f"{hashlib.sha256(bytes(path)).hexdigest()[:32]}.fedloom-ledger"
    return path / ".fedloom" / "ledger" if path.is_dir() else path.with_name(f".{path.name}.fedloom-ledger")


def data_path(source: str) -> Path:
    """The file or folder of a source, without what is held out of it."""
    return and_test(source)[0]


def named(source: str) -> str:
    """What data are called, links as they are, so that what comes behind a link is known by it; nothing if they are made."""
    return "" if is_demo(source) else os.path.abspath(data_path(source))


def witness_path(state_dir: Path, fingerprint: str) -> Path:
    """Where the owner remembers the ledger of data with that fingerprint."""
    return state_dir / LINEAGES / f"{fingerprint}.json"


def _called(source: str, state_dir: Path) -> Path | None:
    """The ledger of data that were called so before they changed, wherever it lies.

    Raises:
        LedgerError: It is gone.
    """
    names = {named(source), str(data_path(source).resolve())}
    known = [(w, seen) for w, seen in sightings([state_dir / LINEAGES]) if not is_demo(source) and seen.data in names]
    known.sort(key=lambda one: one[1].sequence)
    standing = [Path(seen.ledger) for _, seen in known if _holds(Path(seen.ledger), seen.lineage)]
    if known and not standing:
        witness, seen = known[-1]
        raise _gone(seen, witness, Path(seen.ledger))
    return standing[-1] if standing else None


def _refuse_if_known(path: Path, state_dir: Path) -> None:
    """Data that changed have a new fingerprint; their ledger may be gone, or another, all the same."""
    here = _lineage(path) if path.exists() else ""
    for left in (Path(f"{path}{suffix}") for suffix in ("-wal", "-kept")):
        if not here and left.exists():
            raise LedgerError(f"{left} belongs to a privacy ledger that is gone; put {path} back. Nothing is released")
    for other, seen in sightings([state_dir / LINEAGES]):
        if seen.ledger == str(path) and seen.lineage != here:
            raise _gone(seen, other, path)


def _lineage(path: Path) -> str:
    book = LedgerDatabase(path)
    book.close()
    return book.lineage


def _holds(place: Path, lineage: str) -> bool:
    return place.exists() and _lineage(place) == lineage


def _standing(path: Path, lineage: str) -> Path | LedgerError | None:
    """The path, if the ledger is there; after a move it is no longer at every place that it was seen at."""
    try:
        return path if _holds(path, lineage) else None
    except LedgerError as error:
        return error


def _gone(seen: LedgerHead, witness: RollbackRecord, path: Path) -> LedgerError:
    other = f"; the one at {path} is another" if path.exists() else ""
    return LedgerError(
        f"the privacy ledger {seen.ledger} of these data is gone{other}. Put it back; nothing is released without it. "
        f"Whoever owns the data may move {witness.path} away, and what was released before is then no longer counted"
    )
