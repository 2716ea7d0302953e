"""Payloads of secure sums: messages to helpers, and fields that several messages of clients share.

A helper keeps the clients' masks apart from the server. The server never sends a helper what clients uploaded.
"""

from dataclasses import dataclass, field

from common.arrays import Arrays

HELPER, PREPARE, OPEN = "query.helper", "query.prepare", "query.open"
"""Flower message types that helpers answer."""


@dataclass(frozen=True, kw_only=True)
class SumRequest:
    """Request whose reply can be an upload to a secure sum."""

    terms: str = ""
    """Terms of the secure sum as canonical JSON (`SumTerms`); empty requests a reply without masks."""


@dataclass(frozen=True, kw_only=True)
class SumReply:
    """Reply that can be an upload to a secure sum; its other arrays and metrics are then empty."""

    masked: Arrays = field(default_factory=dict)
    """The masked vector, `sum`, of uint32 with noise and uint64 without; empty without terms."""
    sealed: list[str] = field(default_factory=list)
    """One sealed seed for each helper, in the order of the roster, as base64."""


@dataclass(frozen=True, kw_only=True)
class LedgerReply:
    """Reply of a client that reports the head of its privacy ledger."""

    ledger: str = ""
    """Head after the reply, `lineage:sequence:link`; empty without noise."""


@dataclass(frozen=True)
class HelperRequest:
    """Question to a node whether it helps in a run, and notice that the run is complete."""

    run: str
    config: str
    """Resolved `RunConfig` as JSON."""
    over: bool = False
    """True if the run is complete: the helper deletes its keys of the run and replies without a card."""


@dataclass(frozen=True)
class HelperReply:
    """Card of a helper."""

    card: str
    """Signed `HelperCard` as canonical JSON; empty if this node does not help."""


@dataclass(frozen=True)
class PrepareRequest:
    """Request to open the sealed seeds of a sum's clients; no seed leaves the helper."""

    terms: str
    """Terms of the sum as canonical JSON (`SumTerms`)."""
    clients: list[str]
    """Names of the clients, ascending."""
    sealed: list[str]
    """One sealed seed for each client, as base64."""


@dataclass(frozen=True)
class PrepareReply:
    """Clients whose seeds a helper cannot use."""

    round: int
    channel: str
    """Channel of the sum, as in its terms; a reply repeats that of its request."""
    bad: list[str]
    """Names of the clients whose sealed seed does not open, or belongs to other terms."""


@dataclass(frozen=True)
class OpenRequest:
    """Request for the sum of masks of a set of clients, one set for each round and channel."""

    terms: str
    """Terms of the sum as canonical JSON (`SumTerms`)."""
    clients: list[str]
    """Names of the clients in the sum, ascending."""


@dataclass(frozen=True)
class OpenReply:
    """Sum of the masks minus the helper's noise."""

    round: int
    channel: str
    missing: bool
    """True if the seeds are no longer in memory; the server must send `PrepareRequest` again."""
    opened: Arrays = field(default_factory=dict)
    """The sum of masks minus noise, `sum`, in the type of the masked vectors; empty if `missing`."""


HelperPayload = HelperRequest | HelperReply | PrepareRequest | PrepareReply | OpenRequest | OpenReply
