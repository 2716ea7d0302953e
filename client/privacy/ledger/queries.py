"""What a ledger asks of its file, inside a transaction of the caller's."""

import hashlib
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from heapq import merge
from sqlite3 import Connection

from client.privacy.ledger.records import BudgetIncrease, LedgerEntry, Slot, Terms, link_of_raise
from client.privacy.ledger.schema import RAISES, VERSIONS
from common.errors import LedgerError, RefusedError
from common.privacy.accounts import parse_account
from common.privacy.claims import UNBOUNDED, Raised
from common.privacy.options import Unit

Opened = tuple[str, float, float]
"""An account's name, ε and δ."""

_COLUMNS = "sequence, time, run, round, phase, kind, unit, mechanism, neighbours, sensitivity, noise, account, cost"


def opened(db: Connection, lineage: str) -> dict[Unit, Opened]:
    """Every unit's account as it was in force when it was last opened, or raised.

    Raises:
        LedgerError: One was changed since.
    """
    now = {unit: amounts for unit, *amounts in db.execute("SELECT unit, epsilon_now, delta_now FROM accounts")}
    return {u: (name, min(e, now[u][0]), min(d, now[u][1])) for u, (name, e, d) in recorded(db, lineage).items()}


def recorded(db: Connection, lineage: str) -> dict[Unit, Opened]:
    """Every unit's account as it was made, with the ε that it was raised to since.

    Raises:
        LedgerError: As `opened`.
    """
    found: dict[Unit, Opened] = {}
    latest = {one.unit: one.raised.epsilon for one in raises(db)}
    for unit, name, epsilon, delta, link in db.execute("SELECT unit, account, epsilon, delta, link FROM accounts"):
        if link != _seal(lineage, unit, (name, epsilon, delta)):
            raise LedgerError(f"the privacy ledger's account of unit '{unit}' was altered; put it back from a backup")
        found[unit] = name, latest.get(unit, epsilon), delta
    return found


def open_account(db: Connection, lineage: str, unit: Unit, wished: Opened) -> Opened:
    """The account of a unit, made as wished if it is new; ε and δ may be less than those it was made with, never more.

    Until something is released, what it counts in may be exchanged. The first limit of an account that had none is for good,
    if what was released keeps to it.
    """
    seal = _seal(lineage, unit, wished)
    db.execute("INSERT OR IGNORE INTO accounts VALUES (?, ?, ?, ?, ?, ?, ?)", (unit, *wished, seal, *wished[1:]))
    name, epsilon, delta = recorded(db, lineage)[unit]
    unlimited, released = wished[1] < UNBOUNDED <= epsilon, unit in dict(spent_by_unit(db))
    if not released and (name != wished[0] or unlimited):
        _make_anew(db, lineage, unit, (wished[0], wished[1] if unlimited else epsilon, delta))
    elif unlimited and spent(db, unit) <= parse_account(name).total(*wished[1:]):  # a limit, once it limits something
        insert_raise(db, next_raise(db, lineage, unit, (epsilon, wished[1])))
    now = (*wished[1:], unit)
    if opened(db, lineage)[unit][1:] != wished[1:]:
        db.execute("UPDATE accounts SET epsilon_now = ?, delta_now = ? WHERE unit = ?", now)
    return opened(db, lineage)[unit]


def counts_in(db: Connection, unit: Unit) -> str:
    """Name of a unit's account."""
    return str(db.execute("SELECT account FROM accounts WHERE unit = ?", (unit,)).fetchone()[0])


def newest(db: Connection) -> tuple[int, str]:
    """The newest row's number and link; (0, "") before the first."""
    last = "SELECT sequence, link FROM {} ORDER BY sequence DESC LIMIT 1"
    found: list[tuple[int, str]] = [row for table in _chained(db) for row in db.execute(last.format(table))]
    return max(found, default=(0, ""))


def link_at(db: Connection, sequence: int) -> str:
    """A row's link; empty if there is none."""
    same = "SELECT link FROM {} WHERE sequence = ?"
    found = [row[0] for table in _chained(db) for row in db.execute(same.format(table), (sequence,))]
    return str(found[0]) if found else ""


def spent(db: Connection, unit: str, run: str = "", number: int | None = None, more: float = 0.0) -> float:
    """Σ cost of a unit's releases, in one run or in all, in one round or in all, and one more; rounded once."""
    within = "unit = ? AND (? = '' OR run = ?) AND (? IS NULL OR round = ?)"
    found = db.execute(f"SELECT cost FROM releases WHERE {within}", (unit, run, run, number, number))
    return math.fsum((more, *(cost for (cost,) in found)))


def spent_by_unit(db: Connection) -> tuple[tuple[str, float], ...]:
    """Σ cost of each unit, to compare by eye."""
    return tuple(db.execute("SELECT unit, SUM(cost) FROM releases GROUP BY unit ORDER BY unit"))


def paid(db: Connection, slot: Slot) -> list[tuple[int, Terms]]:
    """The rows in which a slot was paid, and on which terms; oldest first."""
    where = "run = ? AND round = ? AND phase = ? AND kind = ? ORDER BY sequence"
    found = db.execute(f"SELECT {_COLUMNS} FROM releases WHERE {where}", tuple(vars(slot).values()))
    return [(int(row[0]), Terms(*row[6:])) for row in found]


def insert(db: Connection, row: LedgerEntry) -> None:
    """Write a row down."""
    about = (*vars(row.slot).values(), *vars(row.terms).values())
    values = (row.sequence, row.time, *about, row.status, row.link)
    db.execute(f"INSERT INTO releases ({_COLUMNS}, status, link) VALUES ({','.join('?' * len(values))})", values)


def next_raise(db: Connection, lineage: str, unit: Unit, epsilon: tuple[float, float]) -> BudgetIncrease:
    """The row that says that a unit's ε is the second of these from now on, and was the first."""
    sequence, before = newest(db)
    raised = Raised(datetime.now(UTC).isoformat(timespec="seconds"), *epsilon)
    return BudgetIncrease(sequence + 1, unit, raised, link_of_raise(before or lineage, sequence + 1, unit, raised))


def insert_raise(db: Connection, row: BudgetIncrease) -> None:
    """Write down that a unit's ε is another from now on."""
    for part in RAISES:
        db.execute(part)
    values = (row.sequence, row.raised.time, row.unit, row.raised.before, row.raised.epsilon, row.link)
    db.execute("INSERT INTO raises VALUES (?, ?, ?, ?, ?, ?)", values)
    db.execute("UPDATE accounts SET epsilon_now = ? WHERE unit = ?", (row.raised.epsilon, row.unit))


def raises(db: Connection) -> list[BudgetIncrease]:
    """Every time that a budget was raised, or first limited after releases; oldest first."""
    if "raises" not in _chained(db):
        return []
    found = db.execute("SELECT sequence, unit, time, epsilon_before, epsilon, link FROM raises ORDER BY sequence")
    return [BudgetIncrease(row[0], row[1], Raised(*row[2:5]), row[5]) for row in found]


def rows(db: Connection) -> Iterator[LedgerEntry]:
    """All rows, oldest first."""
    for found in db.execute(f"SELECT {_COLUMNS}, status, link FROM releases ORDER BY sequence"):
        yield LedgerEntry(found[0], found[1], Slot(*found[2:6]), Terms(*found[6:13]), *found[13:])


def verify(db: Connection, lineage: str) -> None:
    """Follow the links from the lineage to the newest row.

    Raises:
        LedgerError: A row was changed or is missing.
    """
    before = lineage
    written: Iterator[LedgerEntry | BudgetIncrease] = merge(_readable(db), raises(db), key=lambda row: row.sequence)
    for place, row in enumerate(written, start=1):
        if row.sequence != place or row.link != row.link_after(before):
            raise LedgerError(
                f"row {row.sequence} of the privacy ledger was altered; put the ledger back from a backup"
            )
        before = row.link


def _chained(db: Connection) -> tuple[str, ...]:
    """The tables whose rows are numbered and chained together."""
    version = db.execute("PRAGMA user_version").fetchone()[0]
    return ("releases",) if version == VERSIONS[0] else ("releases", "raises")


def _readable(db: Connection) -> Iterator[LedgerEntry]:
    try:
        yield from rows(db)
    except RefusedError as error:
        raise LedgerError(f"a row of the privacy ledger was altered ({error}); put it back from a backup") from None


def _make_anew(db: Connection, lineage: str, unit: Unit, account: Opened) -> None:
    """Exchange a unit's account, of which nothing was released yet; the seal is another."""
    seal = _seal(lineage, unit, account)
    db.execute(
        "UPDATE accounts SET account = ?, epsilon = ?, delta = ?, link = ? WHERE unit = ?", (*account, seal, unit)
    )


def _seal(lineage: str, unit: str, account: Opened) -> str:
    return hashlib.sha256(repr((lineage, unit, *account)).encode()).hexdigest()
