"""Protocol of secure sums, as strategies use it, and the masked uploads of clients."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from common.arrays import Arrays, Floats
from common.errors import WireError
from common.privacy.vectors import Sign
from common.secure.masking import BOX, dtype_of
from common.secure.terms import SumTerms
from common.wire.messages import SumReply
from server.aggregation.replies import Load
from server.round.spool import Spool
from server.secure.store import FixedSum

BOX_TEXT = (BOX + 2) // 3 * 4
"""Number of characters of a sealed box."""

BESIDE = 100_000
"""Bytes of an upload beside numbers and boxes: names of fields, and room for later ones."""


@dataclass(frozen=True)
class Upload:
    """Masked vector of a client, with its seeds sealed to each helper of the roster."""

    load: Load
    """Return the vector as array `sum`, from memory or from disk."""
    boxes: tuple[str, ...]
    steps: int = 0
    """Number of local steps; 0 in sums of other values than updates."""


def limit_upload(terms: SumTerms, helpers: int) -> int:
    """Return the largest size of an upload in bytes."""
    return terms.size * terms.bits // 8 + helpers * 2 * BOX_TEXT + BESIDE


def check_upload(reply: SumReply, terms: SumTerms, helpers: int) -> Upload:
    """Return the upload of a reply.

    Raises:
        WireError: The numbers are missing, of another dtype or size, or the boxes are of another number or size.
    """
    numbers = reply.masked.get("sum")
    if numbers is None or reply.masked.keys() != {"sum"}:
        raise WireError("reply has no masked numbers")
    if numbers.dtype != dtype_of(terms.bits) or numbers.shape != (terms.size,):
        found = f"{numbers.dtype}{list(numbers.shape)}"
        raise WireError(f"masked numbers are {found}, expected uint{terms.bits}[{terms.size}]")
    if len(reply.sealed) != helpers or any(not isinstance(b, str) or len(b) != BOX_TEXT for b in reply.sealed):
        raise WireError(f"reply has no box of {BOX_TEXT} characters for each of {helpers} helpers")
    masked = {"sum": numbers}
    return Upload(lambda: masked, tuple(reply.sealed))


@dataclass(frozen=True)
class Release:
    """Privacy of one client's vector in a sum; the defaults are a sum without noise.

    Args:
        rho: Cost ρ of zCDP; 0 without noise.
        clip: Clip norm C.
        sign: `positive` if no number is below zero.
    """

    rho: float = 0.0
    clip: float = 0.0
    sign: Sign = "signed"


@dataclass(frozen=True)
class Total:
    """Opened sum.

    Args:
        vector: Sum in the clients' units.
        clients: Names of the clients in it, ascending.
        steps: Client -> number of its local steps.
        longest: Largest norm that the mean over the clients can have; infinite without noise.
        spread: Standard deviation of the noise of a number; 0 without noise.
        rejected: Client -> reason why its upload is not in the sum.
    """

    vector: Floats
    clients: list[str]
    steps: Mapping[str, int]
    longest: float = math.inf
    spread: float = 0.0
    rejected: Mapping[str, str] = field(default_factory=dict)


class SumProtocol(Protocol):
    """Secure sum of a round's uploads, whatever the parties behind it."""

    @property
    def is_renewed(self) -> bool:
        """True once after the parties were replaced: the next round, which may be paid for, is lost."""

    def terms(self, number: int, channel: str, template: Arrays, most: int, release: Release) -> SumTerms:
        """Return the terms of a sum over at most so many clients; those that were announced stand.

        Raises:
            ConfigError: No sum of that many clients and numbers is possible.
        """

    def admit(self, terms: SumTerms, clients: Sequence[str]) -> list[str]:
        """Return the clients that are asked, at most as many as the terms allow; earlier ones come first."""

    def assign(self, number: int, clients: Sequence[str]) -> dict[str, int]:
        """Return client -> group for a round; who was asked before stays in its group."""

    def pending(self, number: int, channel: str) -> FixedSum | None:
        """Return the sum whose set of clients was final when the server stopped."""

    def limit(self, terms: SumTerms) -> int:
        """Return the largest size of an upload in bytes."""

    def upload(self, reply: SumReply, terms: SumTerms) -> Upload:
        """Return the upload of a reply.

        Raises:
            WireError: It is malformed.
        """

    def total(self, terms: SumTerms, uploads: Mapping[str, Upload], failed: Mapping[str, str]) -> Total:
        """Return the sum over the uploads, or over those of the pending sum; `failed` is for the error.

        Raises:
            QuorumError: Too few clients, or a helper does not answer.
            SumLostError: The sum will never be opened.
        """

    def spool(self) -> Spool:
        """Return a store of the uploads of one sum until it is opened."""

    def next_number(self, channel: str) -> int:
        """Return a number that no sum of the channel had, for channels whose numbers are not those of rounds."""

    def forget(self, number: int, *channels: str) -> None:
        """Remove the files of the channels' sums up to a round, whose checkpoint is written."""
