"""Rows of a ledger, chained by hashes to detect changes, and the queries on them.

A query runs inside a transaction of the caller.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from heapq import merge
from sqlite3 import Connection
from typing import TYPE_CHECKING, Literal, Self

from client.privacy.ledger.database import INCREASES, PLAIN, TRUST, WITH_INCREASES, WITH_TRUST
from common.errors import LedgerError, RefusedError
from common.privacy.accounts import Account
from common.privacy.claims import NEIGHBOURS, LimitChange
from common.privacy.mechanisms.base import check_positive
from common.privacy.options import Unit

if TYPE_CHECKING:
    from common.privacy.mechanisms.base import AccountedMechanism

Status = Literal["reserved", "released"]
"""`reserved`: charged, but perhaps never sent, as after a crash; `released`: the bytes exist."""

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

    def __post_init__(self) -> None:
        check_positive(sensitivity=self.sensitivity, noise=self.noise, cost=self.cost)

    @classmethod
    def of(cls, unit: Unit, mechanism: "AccountedMechanism", account: Account) -> Self:
        """Return the terms of a mechanism, charged to an account.

        Raises:
            RefusedError: The mechanism's cost in this account is not finite.
        """
        cost = account.charge(mechanism.privacy_cost)
        about = (mechanism.name, NEIGHBOURS[unit], mechanism.sensitivity, mechanism.noise)
        return cls(unit, *about, account.name, cost)


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
        """Return the expected `link`, given the previous link."""
        return link_of(before, self.sequence, self.time, self.slot, self.terms)


@dataclass(frozen=True)
class BudgetIncrease:
    """Increase of a unit's ε by the owner, or its first limit."""

    sequence: int
    """Number in one sequence with the releases."""
    unit: Unit
    raised: LimitChange
    link: str

    def link_after(self, before: str) -> str:
        """Return the expected `link`, given the previous link."""
        return link_of_increase(before, self.sequence, self.unit, self.raised)


def new_entry(sequence: int, before: str, slot: Slot, terms: Terms) -> LedgerEntry:
    """Return the entry of a release that is charged now; `before` is the previous link."""
    time = datetime.now(UTC).isoformat(timespec="seconds")
    return LedgerEntry(sequence, time, slot, terms, "reserved", link_of(before, sequence, time, slot, terms))


def link_of(before: str, sequence: int, time: str, slot: Slot, terms: Terms) -> str:
    """Return the link of an entry; `before` is the previous link, or the lineage for the first row.

    Local trust is left out, as in ledgers of earlier versions.
    """
    fields = (before, sequence, time, *astuple(slot), *astuple(terms))
    fields = fields[:-1] if terms.trust == LOCAL_TRUST else fields
    return hashlib.sha256(repr(fields).encode()).hexdigest()


def link_of_increase(before: str, sequence: int, unit: Unit, raised: LimitChange) -> str:
    """Return the link of an increase; its fields are fewer than an entry's, so neither replaces the other."""
    return hashlib.sha256(repr((before, sequence, "raise", unit, *astuple(raised))).encode()).hexdigest()


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

    Args:
        db: Ledger.
        unit: Protected unit.
        run: Name of one run; empty for all runs.
        number: Number of one round; None for all rounds.
        more: Additional cost.
    """
    within = "unit = ? AND (? = '' OR run = ?) AND (? IS NULL OR round = ?)"
    costs = db.execute(f"SELECT cost FROM releases WHERE {within}", (unit, run, run, number, number))
    return math.fsum((more, *(cost for (cost,) in costs)))


def spent_by_unit(db: Connection) -> tuple[tuple[str, float], ...]:
    """Return the sum of costs of each unit, for display."""
    return tuple(db.execute("SELECT unit, SUM(cost) FROM releases GROUP BY unit ORDER BY unit"))


def charged(db: Connection, slot: Slot) -> list[tuple[int, Terms]]:
    """Return sequence numbers and terms of a slot's entries, oldest first."""
    where = "run = ? AND round = ? AND phase = ? AND kind = ? ORDER BY sequence"
    rows = db.execute(f"SELECT {_columns(db)} FROM releases WHERE {where}", tuple(vars(slot).values()))
    return [(int(row[0]), Terms(*row[6:])) for row in rows]


def insert(db: Connection, entry: LedgerEntry) -> None:
    """Insert an entry."""
    if entry.terms.trust != LOCAL_TRUST:
        _upgrade(db, WITH_TRUST)
    columns = _columns(db)
    fields = (entry.sequence, entry.time, *vars(entry.slot).values(), *vars(entry.terms).values())
    values = (*fields[: columns.count(",") + 1], entry.status, entry.link)
    db.execute(f"INSERT INTO releases ({columns}, status, link) VALUES ({','.join('?' * len(values))})", values)


def mark_released(db: Connection, sequence: int) -> None:
    """Note that the bytes of an entry exist."""
    db.execute("UPDATE releases SET status = 'released' WHERE sequence = ? AND status != 'released'", (sequence,))


def next_increase(db: Connection, lineage: str, unit: Unit, epsilon: tuple[float, float]) -> BudgetIncrease:
    """Return the row that changes a unit's ε from the first to the second of these."""
    sequence, before = newest(db)
    raised = LimitChange(datetime.now(UTC).isoformat(timespec="seconds"), *epsilon)
    return BudgetIncrease(sequence + 1, unit, raised, link_of_increase(before or lineage, sequence + 1, unit, raised))


def insert_increase(db: Connection, row: BudgetIncrease) -> None:
    """Insert an increase and apply it to the unit's account."""
    _upgrade(db, WITH_INCREASES)
    values = (row.sequence, row.raised.time, row.unit, row.raised.before, row.raised.epsilon, row.link)
    db.execute("INSERT INTO raises VALUES (?, ?, ?, ?, ?, ?)", values)
    db.execute("UPDATE accounts SET epsilon_now = ? WHERE unit = ?", (row.raised.epsilon, row.unit))


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
    rows: Iterator[LedgerEntry | BudgetIncrease] = merge(
        _valid_entries(db), increases(db), key=lambda row: row.sequence
    )
    for number, row in enumerate(rows, start=1):
        if row.sequence != number or row.link != row.link_after(before):
            raise LedgerError(f"row {row.sequence} of the privacy ledger was altered; restore the ledger from a backup")
        before = row.link


def _chained_tables(db: Connection) -> tuple[str, ...]:
    """Return the tables whose rows are numbered and chained together."""
    return ("releases",) if _version(db) == PLAIN else ("releases", "raises")


def _columns(db: Connection) -> str:
    """Return the columns of a release, in the order of the fields of `Slot` and `Terms`."""
    return _COLUMNS if _version(db) < WITH_TRUST else f"{_COLUMNS}, trust"


def _version(db: Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _upgrade(db: Connection, version: int) -> None:
    """Add what that version of a ledger has more, if it is newer than the ledger."""
    before = _version(db)
    if before >= version:
        return
    db.execute(INCREASES)
    if version == WITH_TRUST:
        db.execute(TRUST)
    db.execute(f"PRAGMA user_version = {version}")


def _valid_entries(db: Connection) -> Iterator[LedgerEntry]:
    try:
        yield from entries(db)
    except RefusedError as error:
        raise LedgerError(
            f"a row of the privacy ledger was altered ({error}); restore the ledger from a backup"
        ) from None
