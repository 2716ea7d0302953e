"""Privacy ledger: durable record of the releases of one data set, with a fixed budget.

A release is charged before its noise is drawn, and its bytes are cached until they have arrived. A retry therefore sends
identical bytes. A crash can waste budget but never under-reports it (architecture.md, choice 8).
"""

from collections.abc import Callable
from pathlib import Path
from sqlite3 import Connection

from client.privacy.claim import read_claim
from client.privacy.ledger import records as queries
from client.privacy.ledger.accounts import UNLIMITED, Limits, account_name, check_affordable, check_alone, open_account
from client.privacy.ledger.database import LedgerCopy, copy_storage, open_storage
from client.privacy.ledger.records import LedgerEntry, Slot, Terms, new_entry
from client.privacy.ledger.roll_back import LedgerHead, RollbackRecord, check_head, check_on_opening, current_head
from common.errors import RefusedError
from common.privacy.accounts import Account, parse_account
from common.privacy.claims import Claim
from common.privacy.mechanisms.base import AccountedMechanism, check_positive
from common.privacy.options import Unit


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
        self._database, self._cache = open_storage(path)
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
        return Terms.of(self.unit, mechanism, self.account)

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
                check_alone(db, self.unit)
            if account_name(db, self.unit) != terms.account:  # another client of these data chose another account
                self._open(db, self.account)
                self._check_account(terms)
            check_affordable(db, self.unit, slot, terms.cost, self.total, limits)
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
        return read_claim(self._database, self.unit, (self.account.name, self.epsilon, self.delta))

    def copy(self) -> LedgerCopy:
        """Return a copy of a ledger in memory."""
        return copy_storage(self._database, self._cache)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _open(self, db: Connection, account: Account) -> None:
        requested = (account.name, *self._requested)
        name, self.epsilon, self.delta = open_account(db, self._database.lineage, self.unit, requested)
        self.account = parse_account(name)
        self.total = self.account.total(self.epsilon, self.delta)

    def _check_account(self, terms: Terms) -> None:
        if (terms.unit, terms.account) != (self.unit, self.account.name):
            raise RefusedError(f"privacy: this client uses the {self.account.name} account for unit {self.unit}")

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
