"""What a ledger writes down: a row for each release and each raise, chained so that none can change or vanish unnoticed."""

import hashlib
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from typing import Literal, Self

from common.errors import RefusedError
from common.privacy.accounts import Account
from common.privacy.claims import NEIGHBOURS, Raised
from common.privacy.mechanisms.spec import AccountedMechanism
from common.privacy.options import Unit
from common.privacy.validation import check_positive

Status = Literal["reserved", "released"]
"""`reserved`: paid, and perhaps never sent, as after a crash; `released`: its bytes exist."""

_LONGEST = 200
"""Characters of a name in a slot; they come from the server."""


@dataclass(frozen=True)
class Slot:
    """Which answer of a run is meant: asked for again, it is the same answer."""

    run: str
    round: int
    phase: str = ""
    kind: str = "update"

    def __post_init__(self) -> None:
        named = self.run and all(len(name) <= _LONGEST for name in (self.run, self.phase, self.kind))
        if not named or type(self.round) is not int or not 0 <= self.round < 2**62:
            raise RefusedError("privacy: the answer asked for has no proper run, round, phase and kind")


@dataclass(frozen=True)
class Terms:
    """How an answer is made private, and what that costs."""

    unit: Unit
    mechanism: str
    neighbours: str
    """Neighbouring relation."""
    sensitivity: float
    noise: float
    """σ, or Laplace's b."""
    account: str
    cost: float

    def __post_init__(self) -> None:
        check_positive(sensitivity=self.sensitivity, noise=self.noise, cost=self.cost)

    @classmethod
    def of(cls, unit: Unit, mechanism: AccountedMechanism, account: Account) -> Self:
        """The terms of a mechanism, charged to an account.

        Raises:
            RefusedError: The mechanism's loss has no bound in this account.
        """
        cost = account.charge(mechanism.privacy_cost)
        about = (mechanism.name, NEIGHBOURS[unit], mechanism.sensitivity, mechanism.noise)
        return cls(unit, *about, account.name, cost)


@dataclass(frozen=True)
class LedgerEntry:
    """One release, or one that was paid for and never made."""

    sequence: int
    time: str
    """UTC by this machine's clock, for people; nothing depends on it."""
    slot: Slot
    terms: Terms
    status: Status
    link: str
    """SHA-256 over this row and the link before."""

    def link_after(self, before: str) -> str:
        """What `link` must be."""
        return link_of(before, self.sequence, self.time, self.slot, self.terms)


@dataclass(frozen=True)
class BudgetIncrease:
    """The owner's word that more may be spent."""

    sequence: int
    """Counted together with releases."""
    unit: Unit
    raised: Raised
    link: str

    def link_after(self, before: str) -> str:
        """What `link` must be."""
        return link_of_raise(before, self.sequence, self.unit, self.raised)


def reserved(sequence: int, before: str, slot: Slot, terms: Terms) -> LedgerEntry:
    """A row for a release that is paid now; `before` is the link of the row before it."""
    time = datetime.now(UTC).isoformat(timespec="seconds")
    return LedgerEntry(sequence, time, slot, terms, "reserved", link_of(before, sequence, time, slot, terms))


def link_of(before: str, sequence: int, time: str, slot: Slot, terms: Terms) -> str:
    """The link of a row; `before` is the one of the row before, the lineage at first."""
    fields = (before, sequence, time, *astuple(slot), *astuple(terms))
    return hashlib.sha256(repr(fields).encode()).hexdigest()


def link_of_raise(before: str, sequence: int, unit: Unit, raised: Raised) -> str:
    """The link of a raise, as `link_of` a release; it has fewer fields, so neither can pass for the other."""
    return hashlib.sha256(repr((before, sequence, "raise", unit, *astuple(raised))).encode()).hexdigest()
