"""Members of a run's secure sums, whom the server shows to every client before it asks for an upload."""

import base64
import logging
from collections.abc import Iterable, Sequence

from flwr.app import Message

from common.errors import FedloomError, RefusedError, WireError
from common.secure.members import MemberList, read_members
from common.text import printable
from common.wire.codec import decode
from common.wire.messages import MEMBERS, MembersReply, MembersRequest
from server.clients.roster import EnrolledClient, Roster
from server.exchange.grid import content_of
from server.secure.helpers import HelperExchange
from server.secure.store import SumStore

log = logging.getLogger("fedloom.server")

TOGETHER = 2_000
"""Maximum number of cards in a message."""


class Membership:
    """List of members, which grows as clients enrol, and how much of it each client knows."""

    def __init__(self, run: str, exchange: HelperExchange, store: SumStore, roster: Roster) -> None:
        self._run, self._exchange, self._store, self._roster = run, exchange, store, roster
        self._cards, self.check = store.members(), store.check_key()
        """Key of the checks of helpers' sums, which clients are given and helpers are not."""
        self.members = MemberList().grow(read_members(self._cards, run))
        self._seen: set[tuple[str, str]] = set()
        self._known: dict[int, int] = {}
        """Node -> number of members that it knows."""

    def introduce(self) -> MemberList:
        """Add enrolled clients to the list, show it to each client that is online, and return it."""
        clients = sorted(self._roster.clients.values(), key=lambda client: client.name)
        newcomers = [one for one in clients if (one.name, one.card) not in self._seen]
        self._seen |= {(one.name, one.card) for one in newcomers}
        before = len(self._cards)
        self._admit(newcomers)
        if len(self._cards) > before:
            self._store.write_members(self._cards)
        if asked := self._behind(client.node for client in clients):
            asked = sorted(self._exchange.online.intersection(asked))
        while asked:
            asked = self._behind(self._show(asked))
        return self.members

    def _behind(self, nodes: Iterable[int]) -> list[int]:
        return [node for node in nodes if self._known.get(node, 0) < len(self._cards)]

    def _admit(self, clients: Sequence[EnrolledClient]) -> None:
        """Add clients together, or one by one if one of them cannot be a member."""
        try:
            found = read_members([one.card for one in clients], self._run)
            if wrong := next((m.name for m, one in zip(found, clients, strict=True) if m.name != one.name), ""):
                raise WireError(f"its card is that of '{wrong}'")
            grown = self.members.grow(found)
        except FedloomError as error:
            for one in clients if len(clients) > 1 else ():
                self._admit([one])
            if len(clients) == 1:
                log.warning("%s is no member of secure sums: %s", clients[0].name, printable(str(error), 200))
            return
        new = {one.name for one in grown.members[len(self.members.members) :]}
        self._cards += [one.card for one in clients if one.name in new]
        self.members = grown

    def _show(self, nodes: Sequence[int]) -> list[int]:
        """Show each node the members that follow those it knows; return the nodes that know more than before."""
        starts = {node: self._known.get(node, 0) for node in nodes}
        payloads = {start: self._cards[start : start + TOGETHER] for start in {*starts.values()}}
        enrolments = {node: self._roster.clients[node].enrolment for node in nodes}
        check = base64.b64encode(self.check).decode()
        requests = {
            key: MembersRequest(*key, payloads[key[1]], check)
            for key in {(enrolments[node], starts[node]) for node in nodes}
        }
        asked = {node: requests[enrolments[node], starts[node]] for node in nodes}
        return [node for node in self._take(self._exchange.send(asked, MEMBERS)) if self._known[node] != starts[node]]

    def _take(self, answers: Iterable[Message]) -> Iterable[int]:
        for answer in answers:
            node = answer.metadata.src_node_id
            try:
                reply = decode(MembersReply, content_of(answer))
                if (
                    not 0 <= reply.number < len(self.members.digests)
                    or self.members.digests[reply.number] != reply.digest
                ):
                    raise RefusedError("it was shown other members before")
            except FedloomError as error:
                log.warning("%s does not know the members: %s", self._roster.name(node), printable(str(error), 200))
                continue
            self._known[node] = reply.number
            yield node
