"""Inviting nodes to a run and waiting until enough have accepted."""

import logging
import time
from collections.abc import Callable, Iterable

from flwr.app import Message
from flwr.serverapp import Grid

from common.errors import QuorumError, WireError
from common.wire.codec import decode, encode
from common.wire.messages import ENROL, EnrolReply, EnrolRequest
from common.words import count
from server.roster import Client, Roster

log = logging.getLogger("fedloom.server")

FIRST_PAUSE, PAUSE_GROWTH, LONGEST_PAUSE = 0.05, 1.5, 1.0  # seconds between looks at who is online
SETTLED = 5.0  # seconds after which nobody else is waited for where enough came, but too few of them can train


class Enrolment:
    """The invitation and those who took it.

    Args:
        invitation: What every node is asked.
        wait: Seconds to wait for enough clients.
        ask: Sends messages and returns their replies.
    """

    def __init__(
        self,
        invitation: EnrolRequest,
        wait: float,
        ask: Callable[[list[Message]], Iterable[Message]],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.roster = Roster()
        self._invitation, self._wait, self._ask = invitation, wait, ask
        self._clock, self._sleep = clock, sleep

    def assemble(self, grid: Grid, at_least: int) -> None:
        """Wait until so many clients have enrolled, be it without anything to train on.

        Raises:
            QuorumError: Too few in time, with what those that refused said.
        """
        self._wait_for(grid, at_least, lambda client: True)

    def gather(self, grid: Grid, at_least: int) -> dict[str, Client]:
        """Enrolled clients online now that can train, by name, once there are `at_least` of them.

        Raises:
            QuorumError: Too few in time, with what those that refused said.
        """
        return self._wait_for(grid, at_least, lambda client: client.examples > 0)

    def _wait_for(self, grid: Grid, at_least: int, suits: Callable[[Client], bool]) -> dict[str, Client]:
        start, pause = self._clock(), FIRST_PAUSE
        while True:
            online = list(grid.get_node_ids())
            self._invite(self.roster.strangers(online))
            found = {c.name: c for n, c in self.roster.clients.items() if n in online and suits(c)}
            if len(found) >= at_least:
                return found
            answered = len(self.roster.clients.keys() & set(online)) + len(self.roster.refused)
            waited = self._clock() - start
            if waited >= (self._wait if answered < at_least else min(SETTLED, self._wait)):
                raise QuorumError(self._too_few(len(self.roster.able(online)), at_least, waited, len(online)))
            self._sleep(pause)
            pause = min(pause * PAUSE_GROWTH, LONGEST_PAUSE)

    def _invite(self, nodes: list[int]) -> None:
        if not nodes:
            return
        for reply in self._ask([Message(encode(self._invitation), node, ENROL) for node in nodes]):
            node = reply.metadata.src_node_id
            try:
                self.roster.enrol(_accepted(node, reply))
            except WireError as refusal:
                self.roster.refused[node] = str(refusal)
            if node in self.roster.refused:
                log.warning("node %d refused: %s", node, self.roster.refused[node])

    def _too_few(self, able: int, at_least: int, waited: float, online: int) -> str:
        empty = sum(c.examples == 0 for c in self.roster.clients.values())
        reasons = "".join(f"; refused: {reason}" for reason in sorted(set(self.roster.refused.values())))
        return (
            f"{count(able, 'client')} can train, {at_least} needed after {waited:.0f} s "
            f"({online} online, {empty} without anything to train on){reasons}"
        )


def _accepted(node: int, reply: Message) -> Client:
    if reply.has_error():
        raise WireError(reply.error.reason or f"error {reply.error.code}")
    enrolled = decode(EnrolReply, reply.content)
    about = (enrolled.enrolment, enrolled.examples, enrolled.budget, enrolled.shares_metrics)
    return Client(enrolled.client, node, *about)
