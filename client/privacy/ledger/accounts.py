"""Accounts of a ledger, one for each unit: sealed limits, and their increase by the owner.

The owner increases a budget on the owner's machine; no message can request it.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection

from client.privacy.ledger import records as queries
from client.privacy.ledger.database import LedgerDatabase
from client.privacy.ledger.records import BudgetIncrease, Slot
from client.privacy.ledger.roll_back import RollbackRecord, check_on_opening, current_head
from common.errors import ConfigError, LedgerError, RefusedError
from common.privacy.accounts import parse_account
from common.privacy.claims import UNBOUNDED
from common.privacy.options import Unit

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
    latest = {row.unit: row.raised.epsilon for row in queries.increases(db)}
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
    unlimited, released = requested[1] < UNBOUNDED <= epsilon, unit in dict(queries.spent_by_unit(db))
    if not released and (name != requested[0] or unlimited):
        _replace_account(db, lineage, unit, (requested[0], requested[1] if unlimited else epsilon, delta))
    elif unlimited and queries.spent(db, unit) <= parse_account(name).total(*requested[1:]):
        queries.insert_increase(db, queries.next_increase(db, lineage, unit, (epsilon, requested[1])))
    if accounts_in_force(db, lineage)[unit][1:] != requested[1:]:
        limits = (*requested[1:], unit)
        db.execute("UPDATE accounts SET epsilon_now = ?, delta_now = ? WHERE unit = ?", limits)
    return accounts_in_force(db, lineage)[unit]


def account_name(db: Connection, unit: Unit) -> str:
    """Return the name of a unit's account."""
    return str(db.execute("SELECT account FROM accounts WHERE unit = ?", (unit,)).fetchone()[0])


def _replace_account(db: Connection, lineage: str, unit: Unit, account: StoredAccount) -> None:
    """Replace the account of a unit without releases, and its seal."""
    seal = _seal(lineage, unit, account)
    db.execute(
        "UPDATE accounts SET account = ?, epsilon = ?, delta = ?, link = ? WHERE unit = ?", (*account, seal, unit)
    )


def _seal(lineage: str, unit: str, account: StoredAccount) -> str:
    return hashlib.sha256(repr((lineage, unit, *account)).encode()).hexdigest()


@dataclass(frozen=True)
class Limits:
    """Largest sums of costs, in the unit of their account.

    Args:
        run: Limit of a run.
        round: Limit of one round of the run, over all its phases and repetitions.
    """

    run: float = math.inf
    round: float = math.inf


UNLIMITED = Limits()
"""No limit but the ledger's own total."""


def check_affordable(db: Connection, unit: Unit, slot: Slot, cost: float, total: float, limits: Limits) -> None:
    """Accept a cost that stays within all limits.

    Args:
        db: Ledger in a write transaction.
        unit: Protected unit.
        slot: Slot of the release.
        cost: Cost of the release.
        total: Limit of all releases under that unit.
        limits: Limits of the slot's run and round.

    Raises:
        RefusedError: The cost exceeds a limit.
    """
    refused = "release refused: cost exceeds {}; nothing was charged"
    if cost > total or queries.spent(db, unit, more=cost) > total:
        raise RefusedError(refused.format("the remaining privacy budget of this client's data"))
    if queries.spent(db, unit, slot.run, more=cost) > limits.run:
        raise RefusedError(refused.format("the run's remaining budget"))
    if queries.spent(db, unit, slot.run, slot.round, more=cost) > limits.round:
        raise RefusedError(refused.format("the policy's limit for a round (max-epsilon-per-round)"))


def check_alone(db: Connection, unit: Unit) -> None:
    """Accept a unit if no other unit was ever charged.

    Raises:
        RefusedError: Another unit was charged.
    """
    for other, _ in queries.spent_by_unit(db):
        if other != unit:
            raise RefusedError(
                f"release refused: this client's max-epsilon already covers releases of unit {other}, and unit {unit} would be"
                f" a second budget; set privacy.unit={other}"
            )


def increase_budget(path: Path, epsilon: float, record: RollbackRecord | None = None) -> tuple[BudgetIncrease, ...]:
    """Raise ε of all releases from these data, in every account of the ledger where it is smaller.

    Args:
        path: Ledger, which no other process has open.
        epsilon: New ε; δ is unchanged.
        record: Roll-back record of the ledger.

    Returns:
        The rows that were inserted.

    Raises:
        ConfigError: No account has a smaller ε; nothing was changed.
        LedgerError: The ledger is missing, damaged, behind its roll-back record, or open in a client; nothing was changed.
    """
    database = LedgerDatabase(path, alone=True)
    try:
        with database.writing() as db:
            check_on_opening(db, database, record)
            rows = tuple(_insert_increases(db, database.lineage, epsilon))
            head = current_head(db, database)
    finally:
        database.close()
    if record:
        record.write(head)
    return rows


def _insert_increases(db: Connection, lineage: str, epsilon: float) -> Iterator[BudgetIncrease]:
    """Insert a row for each account with a smaller ε."""
    limits = original_accounts(db, lineage)
    for unit, (name, _, delta) in accounts_in_force(db, lineage).items():
        _check(db, unit, (name, epsilon, delta))
    smaller = {unit: limit for unit, (_, limit, _) in sorted(limits.items()) if limit < epsilon}
    if not smaller:
        raise ConfigError(_explain_no_increase(epsilon, [limit for _, limit, _ in limits.values()]))
    for unit, limit in smaller.items():
        row = queries.next_increase(db, lineage, unit, (limit, epsilon))
        queries.insert_increase(db, row)
        yield row


def _check(db: Connection, unit: Unit, requested: StoredAccount) -> None:
    """Raise ConfigError if ε is below the spent ε, or so large that it is no limit."""
    name, epsilon, delta = requested
    if not 0 < epsilon < UNBOUNDED:
        raise ConfigError(f"ε = {epsilon:g} is not a valid limit; choose a positive number below {UNBOUNDED:g}")
    account, spent = parse_account(name), queries.spent(db, unit)
    if spent > account.total(epsilon, delta):
        raise ConfigError(
            f"ε = {epsilon:g} is below ε = {account.claim(spent, delta):.4g}, which was spent under unit {unit}; choose a"
            " larger one"
        )


def _explain_no_increase(epsilon: float, limits: list[float]) -> str:
    if not limits:
        return "these data have no releases, so no limit is stored; set max-epsilon in the policy file"
    least = min(limits)
    allowed = f"ε = {least:g}" if least < UNBOUNDED else "any ε"
    return (
        f"the ledger already allows {allowed}, so ε = {epsilon:g} is no increase; "
        "to lower a limit, set a smaller max-epsilon in the policy file"
    )
