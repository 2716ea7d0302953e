"""Inviting nodes to a run and waiting until enough have accepted."""

import logging
import math
import time
from collections.abc import Callable, Iterable, Set
from typing import Protocol

from flwr.app import Message

from common.errors import QuorumError, WireError
from common.text import count
from common.wire.codec import decode, encode
from common.wire.messages import ENROL, EnrolReply, EnrolRequest
from server.roster import EnrolledClient, Roster

log = logging.getLogger("fedloom.server")

FIRST_PAUSE, PAUSE_GROWTH, LONGEST_PAUSE = 0.05, 1.5, 1.0  # seconds between looks at who is online
SETTLED = 5.0  # seconds without news after which nobody else is waited for where enough answered, but too few can train
SOON = 120.0  # seconds; who waits longer expects more clients than have answered, and a run under way waits no longer
HURRY = 5.0  # seconds that newcomers have to answer where enough clients are there without them
SLOW, SLOWEST = 30.0, 600.0  # seconds that others have, and after which who was slow is asked again: first, and at most


class Online(Protocol):
    """All that this asks of a Grid: who is online."""

    def get_node_ids(self) -> Iterable[int]:
        """Their nodes."""


Suits = Callable[[EnrolledClient], bool]
"""Whether a client is of those that are waited for."""


class Enrolment:
    """The invitation and those who took it.

    Args:
        invitation: What every node is asked.
        wait: Seconds to wait for enough clients.
        ask: Sends messages and returns the replies of so many seconds.
    """

    def __init__(
        self,
        invitation: EnrolRequest,
        wait: float,
        ask: Callable[[list[Message], float], Iterable[Message]],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.roster = Roster(clock)
        self._invitation, self._wait, self._ask = invitation, wait, ask
        self._clock, self._sleep = clock, sleep
        self._slow: dict[int, tuple[float, float]] = {}
        """Node that did not answer in time -> when it is asked again where nobody waits for it, and after which pause."""

    def assemble(self, grid: Online, at_least: int) -> None:
        """Wait until so many clients have enrolled, be it without anything to train on.

        Raises:
            QuorumError: Too few in time, with what those that refused said.
        """
        self._wait_for(grid, at_least, self._wait, lambda client: True)

    def gather(self, grid: Online, at_least: int) -> dict[str, EnrolledClient]:
        """Enrolled clients online now that can train, by name, once there are `at_least` of them.

        A run under way waits `SOON` at most, whatever it waited for its first clients.

        Raises:
            QuorumError: Too few in time, with what those that refused said.
        """
        return self._wait_for(grid, at_least, min(self._wait, SOON), lambda client: client.examples > 0)

    def _wait_for(self, grid: Online, at_least: int, wait: float, suits: Suits) -> dict[str, EnrolledClient]:
        start = news = self._clock()
        pause = FIRST_PAUSE
        while True:
            online = frozenset(grid.get_node_ids())
            strangers = self.roster.strangers(online)
            if self._invite(strangers, hurry=len(self._here(online, suits)) >= at_least):
                news = self._clock()
            online = frozenset(grid.get_node_ids())  # who came back while others were asked
            found = self._here(online, suits)
            if len(found) >= at_least:
                return found
            now = self._clock()
            if now - start >= wait or (now - news >= SETTLED and self._all_came(online, at_least, suits)):
                raise QuorumError(self._too_few(len(self.roster.able(online)), at_least, now - start, len(online)))
            if pause == FIRST_PAUSE:
                log.warning("%s here, %d needed: waiting for up to %.0f s", count(len(found), "client"), at_least, wait)
            self._sleep(pause)
            pause = min(pause * PAUSE_GROWTH, LONGEST_PAUSE)

    def _here(self, online: Set[int], suits: Suits) -> dict[str, EnrolledClient]:
        return {c.name: c for n, c in self.roster.clients.items() if n in online and suits(c)}

    def _all_came(self, online: Set[int], at_least: int, suits: Suits) -> bool:
        """Whether as many answered as were waited for, and nobody is away who could help by coming back."""
        answered = len(self.roster.clients.keys() & online) + len(self.roster.refused)
        away = any(suits(c) for n, c in self.roster.clients.items() if n not in online)
        return self._wait <= SOON and answered >= at_least and not away

    def _invite(self, nodes: list[int], *, hurry: bool) -> bool:
        """Ask nodes to enrol; whether any answered. In a hurry, who is slow holds nobody up, and is asked ever less often.

        A client remembers what it has made ready for the run, and that it refused, so its next answer is quick.
        """
        now = self._clock()
        self._slow = {node: again for node, again in self._slow.items() if node in nodes}
        nodes = [node for node in nodes if not hurry or now >= self._slow.get(node, (-math.inf, 0.0))[0]]
        if not nodes:
            return False
        messages = [Message(encode(self._invitation), node, ENROL) for node in nodes]
        answered = [self._take(reply) for reply in self._ask(messages, HURRY if hurry else SLOW)]
        for node in set(nodes) - set(answered):
            pause = min(2 * self._slow.get(node, (0.0, SLOW / 2))[1], SLOWEST)
            self._slow[node] = self._clock() + pause, pause
        return bool(answered)

    def _take(self, reply: Message) -> int:
        """Enrol who sent the reply, or note why not; its node."""
        node = reply.metadata.src_node_id
        before = self.roster.refused.get(node)
        try:
            self.roster.enrol(_accepted(node, reply))
        except WireError as refusal:
            self.roster.refuse(node, str(refusal))
        reason = self.roster.refused.get(node, before)
        if reason != before:
            log.warning("node %d refused: %s", node, reason)
        return node

    def _too_few(self, able: int, at_least: int, waited: float, online: int) -> str:
        empty = sum(c.examples == 0 for c in self.roster.clients.values())
        reasons = "".join(f"; refused: {reason}" for reason in sorted(set(self.roster.refused.values())))
        return (
            f"{count(able, 'client')} can train, {at_least} needed after {waited:.0f} s "
            f"({online} online, {empty} without anything to train on){reasons}"
        )


def _accepted(node: int, reply: Message) -> EnrolledClient:
    if reply.has_error():
        raise WireError(reply.error.reason or f"error {reply.error.code}")
    enrolled = decode(EnrolReply, reply.content)
    about = (enrolled.enrolment, enrolled.examples, enrolled.budget, enrolled.shares_metrics)
    return EnrolledClient(enrolled.client, node, *about)
