"""Run of a server above that a gateway passes on to its own clients."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from flwr.app import Error, Message
from flwr.serverapp import Grid

from common.config.flatten import from_json
from common.errors import QuorumError, RefusedError
from common.reply_lengths import Lengths
from common.text import count
from common.wire.codec import encode
from common.wire.hubs import Answer, SumBlob
from common.wire.messages import ABSENT, FAILED, REFUSED, TRAIN, EnrolRequest, Payload, TrainRequest
from server.grid import PollingGrid
from server.hub_grid import HubGrid
from server.liveness import Liveness
from server.passed_sum import SumParts, add_up
from server.roster import EnrolledClient
from server.round_limits import RoundLimits
from server.run import build_enrolment
from server.uploads import prompt_pull

SHARE = 0.8
"""Share of the server's time that clients have here; the rest is for the way up."""

GONE = Error(FAILED, "this gateway has no such client; it may have left")
SILENT = Error(ABSENT, "no answer")


class PassedRun:
    """Clients of a gateway in one run of the server above; there is no model and no server step.

    Args:
        grid: Connection to the clients.
        invitation: Invitation of the server above.
        clients: Number of clients from which on the gateway takes part.
        nodes: Folder with the names of clients by their keys; None if names are not bound to keys.
        seconds: Seconds to wait for the clients.
    """

    def __init__(self, grid: Grid, invitation: EnrolRequest, clients: int, nodes: Path | None, seconds: float) -> None:
        self.config = from_json(invitation.config)
        federation = self.config.federation
        self._clients, self._typical = clients, Lengths()
        pull = prompt_pull(grid, SHARE * min(federation.deadline, federation.upload))
        self._hubs = HubGrid(grid, pull)
        quorum = min(federation.min_replies, clients)
        limits = RoundLimits(quorum, SHARE * federation.deadline, SHARE * federation.patience)
        self._grid = PollingGrid(self._hubs, limits, liveness=Liveness(self._hubs.get_nodes))
        waiting = self.config.model_copy(update={"federation": federation.model_copy(update={"wait": seconds})})
        passed = replace(invitation, hops=invitation.hops + 1)
        self._enrolment = build_enrolment(waiting, passed, self._grid, self._hubs, nodes)

    def assemble(self) -> None:
        """Wait until enough clients take part.

        Raises:
            RefusedError: They did not come in time.
        """
        try:
            self._enrolment.assemble(self._grid, self._clients)
        except QuorumError as error:
            here = f"{count(len(self._enrolment.roster.clients), 'client')} of {self._clients}"
            raise RefusedError(f"this gateway has {here}, and takes part when all are here: {error}") from None

    def invite_again(self, names: Collection[str]) -> None:
        """Invite clients whose last replies were not usable, and those that came since."""
        roster = self._enrolment.roster
        for name in names:
            if client := roster.by_name().get(name):
                roster.forget(client.node)
        self._enrolment.assemble(self._grid, 0)

    @property
    def clients(self) -> dict[str, EnrolledClient]:
        """Clients that take part, by name."""
        found = self._enrolment.roster.by_name()
        return {name: found[name] for name in sorted(found)}

    def ask(self, kind: str, request: Payload, names: Sequence[str], seconds: float) -> dict[str, Answer]:
        """Return the answer of each client within so many seconds; an error for those without one."""
        clients, content = self.clients, encode(request)
        here = {name: clients[name].node for name in names if name in clients}
        messages = [Message(content, node, kind, ttl=seconds) for node in here.values()]
        exchange = self._grid.exchange(messages, timeout=seconds)
        replies = {reply.metadata.src_node_id: _answer_of(reply) for reply in exchange.replies}
        return {name: replies.get(here[name], SILENT) if name in here else GONE for name in names}

    def train(
        self, request: TrainRequest, names: Sequence[str], seconds: float, *, sums: bool
    ) -> tuple[dict[str, Answer], SumBlob | None]:
        """Return the answers to a training request, and with `sums` the sum of the usable ones in their place."""
        self._hubs.sums = sums
        answers = self.ask(TRAIN, request, names, seconds)
        if not sums:
            return answers, None
        parts = SumParts(self.config, request, {name: one.examples for name, one in self.clients.items()})
        answers, total, lengths = add_up(parts, answers, self._typical)
        self._typical = lengths or self._typical
        return answers, total


def _answer_of(reply: Message) -> Answer:
    """Return a client's answer; Flower's own errors become a client's failure."""
    if not reply.has_error():
        return reply.content
    return Error(REFUSED if reply.error.code == REFUSED else FAILED, reply.error.reason or "no reason")
