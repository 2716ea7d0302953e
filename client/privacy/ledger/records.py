"""Rows of a ledger: releases and budget increases, chained by hashes to detect changes."""

import hashlib
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, Self

from common.errors import RefusedError
from common.privacy.accounts import Account
from common.privacy.claims import NEIGHBOURS, LimitChange
from common.privacy.options import Unit
from common.privacy.validation import check_positive

if TYPE_CHECKING:  # readers of ledgers need no numpy
    from common.privacy.mechanisms.spec import AccountedMechanism

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
