"""Privacy ledger: durable record of the releases of one data set, with a fixed budget.

A release is charged before its noise is drawn, and its bytes are cached until they have arrived. A retry therefore sends
identical bytes. A crash can waste budget but never under-reports it (architecture.md, choice 8).
"""

import hashlib
import math
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from sqlite3 import Connection

from client.privacy.claim import claim_of
from client.privacy.ledger import database as queries
from client.privacy.ledger.database import (
    MEMORY,
    PLAN,
    BudgetIncrease,
    LedgerDatabase,
    LedgerEntry,
    Slot,
    StoredAccount,
    Terms,
    new_entry,
)
from client.privacy.ledger.roll_back import LedgerHead, RollbackRecord, check_head, check_on_opening, current_head
from common.errors import ConfigError, LedgerError, RefusedError
from common.privacy.accounts import Account, AccountedMechanism, check_positive, parse_account
from common.privacy.claims import NEIGHBOURS, UNBOUNDED, Claim
from common.privacy.options import Unit


class MemoryReplayCache(dict[int, bytes]):
    """Released bytes by the sequence number of their entry, which end with the process, for simulations."""

    def put(self, sequence: int, content: bytes) -> None:
        """Store the bytes of an entry."""
        self[sequence] = content

    def drop(self, sequences: Iterable[int]) -> None:
        """Delete the bytes of these entries, if they are stored."""
        for sequence in sequences:
            self.pop(sequence, None)


class DiskReplayCache:
    """Released bytes in files `<folder>/<sequence>`: SHA-256 of the bytes, then the bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, sequence: int, content: bytes) -> None:
        """Store the bytes of an entry.

        Raises:
            LedgerError: The file cannot be written.
        """
        try:
            self.folder.mkdir(exist_ok=True, mode=0o700)
            self._path(sequence).write_bytes(hashlib.sha256(content).digest() + content)
        except OSError as error:
            raise LedgerError(
                f"cannot write {error.filename or self.folder}: {error.strerror}; free disk space for released bytes"
            ) from None

    def get(self, sequence: int) -> bytes | None:
        """Return the bytes of an entry; None if they are not stored, or damaged."""
        try:
            stored = self._path(sequence).read_bytes()
        except OSError:
            return None
        digest, content = stored[:32], stored[32:]
        return content if hashlib.sha256(content).digest() == digest else None

    def drop(self, sequences: Iterable[int]) -> None:
        """Delete the bytes of these entries, if they are stored."""
        with suppress(OSError):  # a file that stays behind does no harm
            for name in {path.name for path in self.folder.iterdir()} & {str(sequence) for sequence in sequences}:
                (self.folder / name).unlink()

    def _path(self, sequence: int) -> Path:
        return self.folder / str(sequence)


@dataclass(frozen=True)
class LedgerCopy:
    """Copy of a ledger in memory."""

    content: bytes
    """Content of its database."""
    cached: Mapping[int, bytes] = field(default_factory=dict)
    """Sequence number -> cached bytes."""


@dataclass(frozen=True)
class Limits:
    """Largest sums of costs, in the unit of their account.

    Args:
        run: Limit of a run.
        round: Limit of one round of the run, over all its phases and repetitions.
        releases: Number of releases of a planned run; 0 for other runs.
    """

    run: float = math.inf
    round: float = math.inf
    releases: int = 0


UNLIMITED = Limits()
"""No limit but the ledger's own total."""

PREPAID = 2.5e-10
"""Share of a plan's cost that its releases are charged together, since an entry has a cost."""


class Ledger:
    """Account of one unit in the ledger of one data set.

    Args:
        path: Existing ledger (see `locate.open_ledger`), `MEMORY`, or the copy of a ledger in memory.
        unit: Protected unit.
        account: Account to use; fixed by the first release under the unit. ε and δ are fixed when the unit is opened for the
            first time: later a smaller ε or δ tightens, and a larger one has no effect unless the owner raised the ε of the
            ledger too (see `raise_limit`).
        epsilon: Limit ε of all releases of these data under this unit.
        delta: δ of that limit.
        record: Roll-back record of the ledger; None in memory.
        alone: True if ε limits all releases of these data, so that no other unit may have been charged.

    Raises:
        LedgerError: The ledger is missing, damaged, or behind its roll-back record.
        RefusedError: ε or δ is not a positive number.
    """

    def __init__(
        self,
        path: Path | str | LedgerCopy,
        unit: Unit,
        account: Account,
        epsilon: float,
        delta: float,
        record: RollbackRecord | None = None,
        *,
        alone: bool = False,
    ) -> None:
        check_positive(epsilon=epsilon, delta=delta)
        self.unit, self._record, self._alone, self._requested = unit, record, alone, (epsilon, delta)
        self._cache: MemoryReplayCache | DiskReplayCache
        if isinstance(path, LedgerCopy):
            self._database, self._cache = LedgerDatabase(MEMORY, content=path.content), MemoryReplayCache(path.cached)
        else:
            self._cache = MemoryReplayCache() if path == MEMORY else DiskReplayCache(Path(f"{path}-kept"))
            self._database = LedgerDatabase(path, secrets.token_hex(16))
        try:
            with self._database.writing() as db:
                check_on_opening(db, self._database, record)
                self._open(db, account)
                head = current_head(db, self._database)
        except BaseException:
            self._database.close()
            raise
        self._record_head(head)

    def head(self) -> LedgerHead:
        """Return the state after the newest row."""
        with self._database.reading() as db:
            return current_head(db, self._database)

    @property
    def path(self) -> Path:
        """Path of the ledger."""
        return Path(self._database.path)

    def use_account(self, account: Account) -> None:
        """Use that account from now on, unless this unit has releases: then its account stays."""
        if account.name != self.account.name:
            with self._database.writing() as db:
                check_head(db, self._database, self._record)
                self._open(db, account)

    def terms(self, mechanism: AccountedMechanism) -> Terms:
        """Return the terms of a release by that mechanism.

        Raises:
            RefusedError: The mechanism's cost in this account is not finite.
        """
        cost = self.account.charge(mechanism.privacy_cost)
        about = (mechanism.name, NEIGHBOURS[self.unit], mechanism.sensitivity, mechanism.noise)
        return Terms(self.unit, *about, self.account.name, cost)

    def spent(self) -> float:
        """Return the sum of all costs, wasted ones included."""
        with self._database.reading() as db:
            return queries.spent(db, self.unit)

    def spent_in(self, run: str) -> float:
        """Return the sum of a run's costs."""
        with self._database.reading() as db:
            return queries.spent(db, self.unit, run)

    def remaining(self) -> float:
        """Return the remaining budget of the unit."""
        return max(0.0, self.total - self.spent())

    def has_cached(self, slot: Slot) -> bool:
        """Return True if the slot's bytes are cached, so that sending them again costs nothing."""
        with self._database.reading() as db:
            return any(self._cache.get(n) is not None for n, _ in queries.charged(db, slot))

    def release(self, slot: Slot, terms: Terms, make: Callable[[], bytes], limits: Limits = UNLIMITED) -> bytes:
        """Return the cached bytes of a slot, or charge it and call `make`, which draws the noise.

        Raises:
            RefusedError: The cost exceeds a limit, or the slot was released on other terms; nothing was charged.
            LedgerError: The ledger cannot be trusted or written; nothing was released.
        """
        charged = self.charge(slot, terms, limits)
        return charged if isinstance(charged, bytes) else self.store(charged, make())

    def plan_of(self, run: str) -> Terms | None:
        """Return the terms of a run's plan; None if none was charged."""
        with self._database.reading() as db:
            return next((terms for _, terms in queries.charged(db, Slot(run, 0, kind=PLAN))), None)

    def releases_in(self, run: str) -> int:
        """Return the number of a run's releases, repeated ones included."""
        with self._database.reading() as db:
            return queries.count_releases(db, self.unit, run)

    def prepay(self, run: str, terms: Terms, limits: Limits) -> Terms:
        """Charge a plan if none was charged, and return the terms of one of its releases.

        Raises:
            RefusedError: The plan exceeds a limit, or another plan was charged.
            LedgerError: The ledger cannot be trusted or written.
        """
        plan = self.plan_of(run)
        if plan is None:
            self.release(Slot(run, 0, kind=PLAN), terms, bytes, Limits(limits.run))
        elif (plan.mechanism, plan.cost) != (terms.mechanism, terms.cost):
            raise RefusedError(
                f"privacy: the run was planned as '{plan.mechanism}', and this release is of '{terms.mechanism}'; request the"
                " same steps and costs in each round"
            )
        return replace(terms, cost=terms.cost * PREPAID / limits.releases)

    def charge(self, slot: Slot, terms: Terms, limits: Limits = UNLIMITED) -> int | bytes:
        """Charge a slot and return its entry's sequence number, for `store`; or its cached bytes, for free.

        A slot is charged again if its bytes were never cached, or were acknowledged. It raises the errors of `release`.
        """
        self._check_account(terms)
        with self._database.writing() as db:
            check_head(db, self._database, self._record)
            if (cached := self._cached_bytes(db, slot, terms)) is not None:
                return cached
            if self._alone:
                self._check_alone(db)
            if queries.account_name(db, self.unit) != terms.account:  # another client of these data chose another one
                self._open(db, self.account)
                self._check_account(terms)
            self._check_affordable(db, slot, terms.cost, limits)
            sequence, link = queries.newest(db)
            entry = new_entry(sequence + 1, link or self._database.lineage, slot, terms)
            queries.insert(db, entry)
            head = current_head(db, self._database)
        self._record_head(head)
        return entry.sequence

    def store(self, sequence: int, content: bytes) -> bytes:
        """Cache the bytes of a charged entry; they may be sent afterwards only."""
        self._cache.put(sequence, content)
        with self._database.writing(durable=False) as db:
            queries.mark_released(db, sequence)
        return content

    def acknowledge(self, run: str, before_round: int) -> None:
        """Drop cached bytes of earlier rounds, which have arrived; their costs stay."""
        with self._database.reading() as db:
            earlier = "SELECT sequence FROM releases WHERE unit = ? AND run = ? AND round < ?"
            self._cache.drop(n for (n,) in db.execute(earlier, (self.unit, run, before_round)))

    def entries(self) -> list[LedgerEntry]:
        """Return all releases of this unit, oldest first."""
        with self._database.reading() as db:
            return [entry for entry in queries.entries(db) if entry.terms.unit == self.unit]

    def claim(self) -> Claim:
        """Return the claim of this unit."""
        with self._database.reading() as db:
            original = queries.original_accounts(db, self._database.lineage)[self.unit]
            entries, increases = [*queries.entries(db)], queries.increases(db)
        in_force = (self.account.name, self.epsilon, self.delta)
        return claim_of(self.unit, in_force, original, entries, increases)

    def copy(self) -> LedgerCopy:
        """Return a copy of a ledger in memory."""
        with self._database.reading() as db:
            sequences = [n for (n,) in db.execute("SELECT sequence FROM releases")]
        cached = {n: content for n in sequences if (content := self._cache.get(n)) is not None}
        return LedgerCopy(self._database.content(), cached)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _open(self, db: Connection, account: Account) -> None:
        requested = (account.name, *self._requested)
        name, self.epsilon, self.delta = queries.open_account(db, self._database.lineage, self.unit, requested)
        self.account = parse_account(name)
        self.total = self.account.total(self.epsilon, self.delta)

    def _check_account(self, terms: Terms) -> None:
        if (terms.unit, terms.account) != (self.unit, self.account.name):
            raise RefusedError(f"privacy: this client uses the {self.account.name} account for unit {self.unit}")

    def _check_affordable(self, db: Connection, slot: Slot, cost: float, limits: Limits) -> None:
        """Accept a cost that stays within all limits, in a write transaction; else raise RefusedError."""
        refused = "release refused: cost exceeds {}; nothing was charged"
        if cost > self.total or queries.spent(db, self.unit, more=cost) > self.total:
            raise RefusedError(refused.format("the remaining privacy budget of this client's data"))
        if queries.spent(db, self.unit, slot.run, more=cost) > limits.run:
            raise RefusedError(refused.format("the run's remaining budget"))
        if queries.spent(db, self.unit, slot.run, slot.round, more=cost) > limits.round:
            raise RefusedError(refused.format("the policy's limit for a round (max-epsilon-per-round)"))
        if limits.releases and queries.count_releases(db, self.unit, slot.run) >= limits.releases:
            raise RefusedError(refused.format("the releases of the run's plan"))

    def _check_alone(self, db: Connection) -> None:
        """Accept a unit if no other unit was ever charged; else raise RefusedError."""
        for other, _ in queries.spent_by_unit(db):
            if other != self.unit:
                raise RefusedError(
                    f"release refused: this client's max-epsilon already covers releases of unit {other}, and unit {self.unit}"
                    f" would be a second budget; set privacy.unit={other}"
                )

    def _cached_bytes(self, db: Connection, slot: Slot, terms: Terms) -> bytes | None:
        earlier = queries.charged(db, slot)
        if any(charged != terms for _, charged in earlier):
            raise RefusedError("privacy: this reply was already released on other terms; request it on the same terms")
        for sequence, _ in earlier:
            if (content := self._cache.get(sequence)) is not None:
                queries.mark_released(db, sequence)  # a crash right after caching leaves the entry unmarked
                return content
        return None

    def _record_head(self, head: LedgerHead) -> None:
        if self._record is not None:
            self._record.write(head)


def increase_budget(path: Path, epsilon: float, record: RollbackRecord | None = None) -> tuple[BudgetIncrease, ...]:
    """Raise ε of all releases from these data, in every account of the ledger where it is smaller.

    No other process has the ledger open. δ is unchanged.

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
    limits = queries.original_accounts(db, lineage)
    for unit, (name, _, delta) in queries.accounts_in_force(db, lineage).items():
        _check(db, unit, (name, epsilon, delta))
    smaller = {unit: limit for unit, (_, limit, _) in sorted(limits.items()) if limit < epsilon}
    if not smaller:
        raise ConfigError(_explain_no_increase(epsilon, [limit for _, limit, _ in limits.values()]))
    for unit, limit in smaller.items():
        yield queries.insert_increase(db, lineage, unit, (limit, epsilon))


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
