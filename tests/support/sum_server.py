"""Server in a round of a secure sum, whose helpers answer as a test says."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from flwr.app import Message

from common.secure.masking import BOX, CHECKS
from common.secure.members import MemberList
from common.wire.codec import encode
from common.wire.messages import OpenReply, PrepareReply, TrainReply
from server.clients.roster import EnrolledClient
from server.exchange.grid import content_size
from server.round.method import RoundContext
from server.round.spool import Spool
from server.secure.helpers import HelperExchange
from server.secure.intake import SecureIntake
from server.secure.members import Membership
from server.secure.store import SumStore
from server.secure.sums import HelperSums, Opening, Upload
from tests.support.helpers import EXACT, members, roster, terms
from tests.support.strategies import Server
from tests.support.toys import instruction

BOXES = ["A" * ((BOX + 2) // 3 * 4)] * 2


MEMBERS = members("ann", "bob")


class SumServer(Server):
    """Server of a sum without noise over so many clients, with four uploads in memory.

    Args:
        folder: Folder of the run.
        clients: Number of clients; their names are numbers of four digits.
        size: Size of a vector.
    """

    def __init__(self, folder: Path, clients: int, size: int) -> None:
        super().__init__("fedavg")
        self.change: Callable[[Any], Any] = lambda reply: reply
        """Returns the answer of a helper in place of a good one."""
        self.size, self._store = size, SumStore(folder / "secure", "toy")
        self.terms = terms(
            size=size, layout=(("update", size),), roster=roster().digest, members=MEMBERS.digest, most=128, **EXACT
        )
        for node in range(clients):
            self.enrolment.roster.enrol(EnrolledClient(f"{node:04}", node, "toy:0", 10))
        self._sums = HelperSums(self.config, roster(), self._membership, self._helpers, self._store)
        self.at_round = RoundContext(self.config, self.strategy.state)
        self.uploads = SecureIntake(self.config, self.enrolment, self.strategy.method, self._sums)
        self.uploads.terms = [self.terms]
        self.listen(Spool(folder, most=4 * 8 * size))

    def listen(self, spool: Spool) -> None:
        """Prepare to take the uploads of the round again."""
        self.uploads.spool, self.uploads.at = spool, self.at_round

    @property
    def _helpers(self) -> HelperExchange:
        return cast(HelperExchange, self)

    @property
    def _membership(self) -> Membership:
        return cast(Membership, self)

    members = MEMBERS

    def introduce(self) -> MemberList:
        """Return the members."""
        return MEMBERS

    @property
    def opening(self) -> Opening:
        """A new opening of the sum."""
        return Opening(self.terms, roster(), MEMBERS, bytes(32), self._helpers, self._store)

    def ask(self, requests: Mapping[str, Any], kind: str, reply: type[Any]) -> dict[str, Any]:
        """Return the answers of helpers."""
        opened = {"sum": np.zeros(self.size + CHECKS, "<u8")}
        good = PrepareReply(1, "train", []) if reply is PrepareReply else OpenReply(1, "train", False, opened)
        return {name: self.change(good) for name in requests}

    def reply(self, number: int) -> TrainReply:
        """Return a reply with this number in all places."""
        masked = {"sum": np.full(self.size, number, "<u8"), "proof": np.zeros((2, CHECKS), "<u8")}
        return replace(TrainReply(1, {}, {}, 0.0, 1, 1, masked=masked, sealed=BOXES))

    def take(self, node: int, reply: TrainReply) -> Message:
        """Return the message of a reply after it arrived."""
        message = Message(encode(reply), reply_to=instruction(node))
        before = content_size(message.content)
        self.uploads.take(node, message)
        assert content_size(message.content) == before
        return message

    def split(self, *messages: Message) -> tuple[dict[str, Upload], dict[str, str]]:
        """Return client -> upload, and client -> reason for bad ones."""
        return self.uploads.split(self.at_round, list(messages))
