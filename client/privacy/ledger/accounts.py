"""Accounts of a ledger: one for each unit, sealed against changes, with the limits in force."""

import hashlib
from sqlite3 import Connection

from client.privacy.ledger import queries
from common.errors import LedgerError
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
