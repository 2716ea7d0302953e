"""The privacy ledger: what was released from one data set, and a budget that no request can exceed.

A release is paid before its noise is drawn, and its bytes are kept until they are known to have arrived; so a retry sends the
same bytes, and a crash may waste budget but never hide it (architecture.md, choice 8).
"""

import secrets
from collections.abc import Callable
from pathlib import Path
from sqlite3 import Connection

from client.privacy.claim import claim_of
from client.privacy.ledger import queries
from client.privacy.ledger.database import MEMORY, LedgerDatabase
from client.privacy.ledger.limits import UNLIMITED, Limits, check_affordable, check_alone
from client.privacy.ledger.records import LedgerEntry, reserved
from client.privacy.ledger.records import Slot as Slot
from client.privacy.ledger.records import Terms as Terms
from client.privacy.ledger.replay_cache import DiskReplayCache, KeptInMemory, ReplayCache
from client.privacy.ledger.rollback import LedgerHead, RollbackRecord
from client.privacy.ledger.verify import check, compare, sighting
from common.errors import RefusedError
from common.privacy.accounts import Account, parse_account
from common.privacy.claims import Claim
from common.privacy.mechanisms.spec import AccountedMechanism
from common.privacy.options import Unit
from common.privacy.validation import check_positive

_RELEASED = "UPDATE releases SET status = 'released' WHERE sequence = ? AND status != 'released'"


class Ledger:
    """One unit's account in the ledger of one data set.

    Args:
        path: An existing ledger (see `places.open_ledger`), or `MEMORY`.
        unit: Whose data are hidden.
        account: What to count in. It is fixed by the first release under the unit. ε and δ are fixed when the unit is opened
            for the first time: later a smaller ε or δ tightens, a larger one has no effect, unless the owner raised the ε
            here too (see `raising`).
        epsilon: ε of everything ever released from these data under this unit.
        delta: δ that goes with it.
        witness: Where the owner remembers this ledger; None in memory.
        alone: Whether ε is that of everything released from these data, so that no other unit may have been charged.

    Raises:
        LedgerError: The ledger is missing, damaged, or behind its witness.
        RefusedError: ε or δ is no positive number.
    """

    def __init__(
        self,
        path: Path | str,
        unit: Unit,
        account: Account,
        epsilon: float,
        delta: float,
        witness: RollbackRecord | None = None,
        *,
        alone: bool = False,
    ) -> None:
        check_positive(epsilon=epsilon, delta=delta)
        self.unit, self._witness, self._alone, self._wished = unit, witness, alone, (epsilon, delta)
        self._book = LedgerDatabase(path, secrets.token_hex(16))
        self._kept: ReplayCache = KeptInMemory() if path == MEMORY else DiskReplayCache(Path(f"{path}-kept"))
        try:
            with self._book.writing() as db:
                check(db, self._book, witness)
                self._open(db, account)
                seen = sighting(db, self._book)
        except BaseException:
            self._book.close()
            raise
        self._testify(seen)

    @property
    def path(self) -> Path:
        """Where it is."""
        return Path(self._book.path)

    def count_in(self, account: Account) -> None:
        """Count in that account from now on, unless something was released under this unit: then its own stands."""
        if account.name != self.account.name:
            with self._book.writing() as db:
                compare(db, self._book, self._witness)
                self._open(db, account)

    def terms(self, mechanism: AccountedMechanism) -> Terms:
        """What a mechanism would cost here.

        Raises:
            RefusedError: Its loss has no bound in this account.
        """
        return Terms.of(self.unit, mechanism, self.account)

    def spent(self) -> float:
        """Sum of all costs: paid, and perhaps wasted."""
        with self._book.reading() as db:
            return queries.spent(db, self.unit)

    def spent_in(self, run: str) -> float:
        """Sum of one run's costs."""
        with self._book.reading() as db:
            return queries.spent(db, self.unit, run)

    def remaining(self) -> float:
        """What may still be spent."""
        return max(0.0, self.total - self.spent())

    def keeps(self, slot: Slot) -> bool:
        """Whether a slot's bytes are kept, so that sending them again costs nothing."""
        with self._book.reading() as db:
            return any(self._kept.get(n) is not None for n, _ in queries.paid(db, slot))

    def release(self, slot: Slot, terms: Terms, make: Callable[[], bytes], limits: Limits = UNLIMITED) -> bytes:
        """The bytes of that slot: kept ones, or new ones that `make` draws the noise of, after they are paid.

        Raises:
            RefusedError: The budget does not suffice, or the slot was released on other terms; nothing was spent.
            LedgerError: The ledger cannot be trusted or written; nothing was released.
        """
        paid = self.reserve(slot, terms, limits)
        return paid if isinstance(paid, bytes) else self.store(paid, make())

    def reserve(self, slot: Slot, terms: Terms, limits: Limits = UNLIMITED) -> int | bytes:
        """Pay for a slot: the number of its row, for `store`; or the bytes that are kept of it, which cost nothing.

        A slot that was paid without its bytes being kept, or whose bytes were acknowledged, is paid anew.

        Raises:
            RefusedError, LedgerError: As `release`.
        """
        self._check_account(terms)
        with self._book.writing() as db:
            compare(db, self._book, self._witness)
            if (kept := self._bytes(db, slot, terms)) is not None:
                return kept
            if self._alone:
                check_alone(db, self.unit)
            if queries.counts_in(db, self.unit) != terms.account:  # another client of these data exchanged it
                self._open(db, self.account)
                self._check_account(terms)
            check_affordable(db, self.unit, slot, terms.cost, self.total, limits)
            sequence, link = queries.newest(db)
            row = reserved(sequence + 1, link or self._book.lineage, slot, terms)
            queries.insert(db, row)
            seen = sighting(db, self._book)
        self._testify(seen)
        return row.sequence

    def store(self, sequence: int, content: bytes) -> bytes:
        """Keep the bytes of a row that was paid; only then may they be sent."""
        self._kept.put(sequence, content)
        with self._book.writing(durable=False) as db:
            db.execute(_RELEASED, (sequence,))
        return content

    def acknowledge(self, run: str, before_round: int) -> None:
        """Forget the bytes of rounds before that one: they have arrived. What they cost stays."""
        with self._book.reading() as db:
            old = "SELECT sequence FROM releases WHERE unit = ? AND run = ? AND round < ?"
            self._kept.drop(n for (n,) in db.execute(old, (self.unit, run, before_round)))

    def rows(self) -> list[LedgerEntry]:
        """Every release of this unit, oldest first."""
        with self._book.reading() as db:
            return [row for row in queries.rows(db) if row.terms.unit == self.unit]

    def claim(self) -> Claim:
        """What may be said of this unit."""
        with self._book.reading() as db:
            raises, made = queries.raises(db), queries.recorded(db, self._book.lineage)[self.unit]
            rows = list(queries.rows(db))
        return claim_of(self.unit, (self.account.name, self.epsilon, self.delta), made, rows, raises)

    def close(self) -> None:
        """Let go of the file."""
        self._book.close()

    def _open(self, db: Connection, account: Account) -> None:
        wished = (account.name, *self._wished)
        name, self.epsilon, self.delta = queries.open_account(db, self._book.lineage, self.unit, wished)
        self.account = parse_account(name)
        self.total = self.account.total(self.epsilon, self.delta)

    def _check_account(self, terms: Terms) -> None:
        if (terms.unit, terms.account) != (self.unit, self.account.name):
            raise RefusedError(f"privacy: this client counts in {self.account.name} for unit {self.unit}")

    def _bytes(self, db: Connection, slot: Slot, terms: Terms) -> bytes | None:
        earlier = queries.paid(db, slot)
        if any(agreed != terms for _, agreed in earlier):
            raise RefusedError("privacy: this round was already answered on other terms, which stand")
        for sequence, _ in earlier:
            if (content := self._kept.get(sequence)) is not None:
                db.execute(_RELEASED, (sequence,))  # a client that died right after it kept them did not say so
                return content
        return None

    def _testify(self, seen: LedgerHead) -> None:
        if self._witness is not None:
            self._witness.write(seen)
