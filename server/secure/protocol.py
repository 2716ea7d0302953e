"""Protocol of secure sums, as strategies use it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from common.arrays import Arrays, Floats
from common.secure.terms import Sign, SumTerms
from common.wire.sums import SumReply
from server.secure.store import FixedSum
from server.secure.uploads import Upload
from server.spool import Spool


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
