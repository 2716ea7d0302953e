"""Invitation of nodes to a run, checks of their replies, and waiting until enough have accepted."""

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Set
from dataclasses import dataclass, field, replace
from typing import Protocol

from flwr.app import Message

from common.errors import DataError, FedloomError, QuorumError, WireError
from common.node_names import HOSTED_NAME, NODE_NAME
from common.text import count, printable
from common.wire.codec import decode, encode
from common.wire.hubs import is_from_hub, split_answers
from common.wire.messages import ENROL, EnrolReply, EnrolRequest
from server.clients.ledger_heads import LedgerHeads
from server.clients.names import REVOKED_KEY, NameBindings
from server.clients.roster import FORGOTTEN, EnrolledClient, Roster
from server.exchange.grid import MEGABYTE, content_of, limit_to
from server.exchange.relays import HOSTED_BYTES, HubGrid, split_reply
from server.record.events import Refusal
from server.round.checks import ENROL_REPLY, MAX_EXAMPLES


def explain_shortage(roster: Roster, online: Set[int], at_least: int, waited: float) -> FedloomError:
    """Return the error of a wait for `at_least` clients, after `waited` seconds with these nodes online."""
    empty = sum(client.examples == 0 for client in roster.clients.values())
    if empty == len(roster.clients) >= at_least and not roster.refused:
        return DataError(f"{count(empty, 'client')} enrolled, none has training data")
    return QuorumError(
        f"{count(len(roster.select_trainable(online)), 'client')} can train, {at_least} required after {waited:.0f} s "
        f"({len(online)} online, {empty} without training data){_refusals(roster)}"
    )


def _refusals(roster: Roster) -> str:
    """Return the number of refusals for each reason, such as `; 3 refused: REASON`; empty without any."""
    return "".join(f"; {number} refused: {reason}" for reason, number in roster.reasons().items())


SUMS = "hubs do not take part in runs with helpers; let each of its clients join by a node of its own"


def accept(node: int, reply: Message, hosted: str = "") -> EnrolledClient:
    """Return the client that a reply to the invitation enrols.

    `hosted` is the name of a client of a hub.

    Raises:
        WireError: The client refuses, or its name or numbers are invalid.
    """
    enrolled = decode(EnrolReply, content_of(reply))
    if not (enrolled.client == hosted if hosted else NODE_NAME.fullmatch(enrolled.client)):
        raise WireError(
            f"invalid client name '{printable(enrolled.client, 80)}'; use up to 64 letters, digits, '.', '_' and"
            " '-', starting with a letter or digit (--name)"
        )
    if not 0 <= enrolled.examples <= MAX_EXAMPLES:
        raise WireError(f"{enrolled.examples} training records, at most {MAX_EXAMPLES:,} are accepted")
    about = enrolled.enrolment, enrolled.examples, enrolled.budget, enrolled.shares_metrics
    return EnrolledClient(enrolled.client, node, *about, enrolled.ledger, enrolled.card)


@dataclass(frozen=True)
class HubAdmission:
    """Admission of hubs to a run.

    Args:
        grid: Grid that gives each client of a hub a node; None refuses all hubs.
        names: Names and numbers of clients that belong to keys.
        refusal: Reason why this run takes no hubs; empty if it does.
    """

    grid: HubGrid | None = None
    names: NameBindings = field(default_factory=NameBindings)
    refusal: str = ""

    def admit(self, reply: Message, hosted: dict[int, str]) -> list[Message]:
        """Admit a hub by its first reply to the invitation, and return the replies of its clients.

        The hub's clients are added to `hosted`, node -> name.

        Raises:
            WireError: The run takes no hubs, or the hub has too many clients, or names that it must not have.
        """
        if self.grid is None or self.refusal:
            raise WireError(self.refusal or "this server takes no hubs")
        node, clients = reply.metadata.src_node_id, [*split_answers(reply.content)]
        if len(clients) > (most := self.names.most_clients([node])[node]):
            raise WireError(
                f"the key is registered for {count(most, 'client')}, and its hub brings {len(clients):,}; the server's"
                f" owner can set another number with fedloom nodes add KEY --clients {len(clients)}"
            )
        _check_names(clients)
        self.names.resolve(node, clients[0])
        nodes = self.grid.admit(node, clients)
        hosted |= {client: name for name, client in nodes.items()}
        asked = {name: Message(reply.content, client, reply.metadata.message_type) for name, client in nodes.items()}
        return split_reply(reply, asked)


def _check_names(clients: list[str]) -> None:
    found = [HOSTED_NAME.fullmatch(name) for name in clients]
    if None in found:
        wrong = clients[found.index(None)]
        raise WireError(f"invalid client name '{printable(wrong, 80)}' of a hub; use HUB/CLIENT")
    hubs = {one["hub"] for one in found if one}
    if len(hubs) > 1:
        first, second = sorted(hubs)[:2]
        raise WireError(f"a hub has one name, and this one has clients of '{first}' and of '{second}'")


log = logging.getLogger("fedloom.server")

FIRST_PAUSE_SECONDS, PAUSE_GROWTH, MAX_PAUSE_SECONDS = 0.05, 1.5, 1.0  # seconds between two queries of the online nodes
QUIET_SECONDS = 5.0  # seconds without news after which the wait ends if enough nodes answered, but too few can train
MAX_REWAIT_SECONDS = 120.0  # longest wait of a running run; a longer configured wait expects further clients
ANSWER_SECONDS = 30.0  # to answer if clients are missing, and the first pause before a slow node is invited again
MAX_RETRY_SECONDS = 600.0  # longest such pause
MAX_REASON = 1_000  # characters of a refusal, which may state agreed and offered terms
REPORT_SECONDS = 5.0  # seconds between two reports of the same wait


class NodeDirectory(Protocol):
    """Part of a Grid that enrolment needs: the online nodes."""

    def get_node_ids(self) -> Iterable[int]:
        """Return the ids of the online nodes."""


ClientFilter = Callable[[EnrolledClient], bool]
"""Predicate that is True for clients that count towards the required number."""


class Enrolment:
    """Invitation of nodes and the clients that accepted it.

    Args:
        invitation: Request sent to every node.
        wait: Seconds to wait for enough clients.
        ask: Function that sends messages and returns the replies within a number of seconds; with 0 seconds at once those to
            this and earlier such calls that have come.
        clock: Monotonic seconds.
        sleep: Function that waits a number of seconds.
        names: Names that belong to keys.
        ledgers: Heads of the clients' privacy ledgers.
        hubs: Admission of hubs; None refuses them.
        forgets: Predicate that is True for the names of clients that the run is without.
    """

    def __init__(
        self,
        invitation: EnrolRequest,
        wait: float,
        ask: Callable[[list[Message], float], Iterable[Message]],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        names: NameBindings | None = None,
        ledgers: LedgerHeads | None = None,
        hubs: HubAdmission | None = None,
        forgets: Callable[[str], bool] = lambda client: False,
    ) -> None:
        self.roster, self.helpers, self._names = Roster(clock), invitation.helpers, names or NameBindings()
        self.ledgers, self._hubs = ledgers or LedgerHeads(), hubs or HubAdmission()
        self._invitation, self._wait, self._ask = invitation, wait, ask
        self._clock, self._sleep, self._forgets = clock, sleep, forgets
        self.on_wait: Callable[[Collection[int], int, float], None] = lambda online, wanted, seconds: None
        """Callback while clients are missing: connected nodes, required clients, and remaining seconds."""
        self.on_refusal: Callable[[Refusal], None] = lambda refusal: None
        """Callback with each new reason of a client."""
        self._reported: set[tuple[str, str]] = set()
        self._alike = Counter[str]()
        self._slow: dict[int, tuple[float, float]] = {}
        """Node without an answer so far -> time of its next invitation, and the pause before it."""
        self._came: list[Message] = []
        """Answers that nobody waited for, and that are not taken yet."""

    def assemble(self, grid: NodeDirectory, at_least: int) -> None:
        """Wait until `at_least` clients have enrolled, with or without training data.

        Raises:
            QuorumError: Too few clients enrolled in time; names the reasons of refusals.
        """
        self._wait_for(grid, at_least, self._wait, lambda client: True)

    def gather(self, grid: NodeDirectory, at_least: int) -> dict[str, EnrolledClient]:
        """Return online clients with training data by name, once there are `at_least` of them.

        A running run waits at most `MAX_REWAIT_SECONDS`, whatever the configured wait.

        Raises:
            DataError: Enough clients enrolled, and none of them has training data.
            QuorumError: Too few clients enrolled in time; names the reasons of refusals.
        """
        return self._wait_for(grid, at_least, min(self._wait, MAX_REWAIT_SECONDS), lambda client: client.examples > 0)

    def _wait_for(
        self, grid: NodeDirectory, at_least: int, wait: float, is_suitable: ClientFilter
    ) -> dict[str, EnrolledClient]:
        start = news = self._clock()
        pause, reported = FIRST_PAUSE_SECONDS, -math.inf
        while True:
            self.remove_revoked()
            online = frozenset(grid.get_node_ids())
            uninvited, suitable = self.roster.select_uninvited(online), self._here(online, is_suitable)
            if self._invite(uninvited, hurry=len(suitable) >= at_least):
                news = self._clock()
            if uninvited:
                online = frozenset(grid.get_node_ids())  # nodes may have returned in the meantime
                suitable = self._here(online, is_suitable)
            if len(suitable) >= at_least:
                return suitable
            now = self._clock()
            if now - start >= wait or (now - news >= QUIET_SECONDS and self._all_came(online, at_least, is_suitable)):
                raise explain_shortage(self.roster, online, at_least, now - start)
            if pause == FIRST_PAUSE_SECONDS:
                here = count(len(suitable), "client") + (" take part" if self.roster.refused else " online")
                text = "%s, %d required%s; waiting up to %.0f s"
                log.warning(text, here, at_least, _refusals(self.roster), wait)
            if now - reported >= REPORT_SECONDS:
                self.on_wait(online, at_least, start + wait - now)
                reported = now
            self._sleep(pause)
            pause = min(pause * PAUSE_GROWTH, MAX_PAUSE_SECONDS)

    def remove_revoked(self) -> None:
        """Remove the clients whose keys were revoked since they enrolled, and report them as refused."""
        for node in self._names.revoked([*self.roster.clients]):
            self.roster.registered[node] = self.roster.leave(node)
            self.roster.refuse(node, REVOKED_KEY)
            self._explain(node, REVOKED_KEY, wrote=True)  # it is disconnected

    def _here(self, online: Set[int], is_suitable: ClientFilter) -> dict[str, EnrolledClient]:
        return {c.name: c for n, c in self.roster.clients.items() if n in online and is_suitable(c)}

    def _all_came(self, online: Set[int], at_least: int, is_suitable: ClientFilter) -> bool:
        """Return True if enough nodes answered and no suitable client is offline."""
        answered = len(self.roster.clients.keys() & online) + len(self.roster.refused)
        away = any(is_suitable(c) for n, c in self.roster.clients.items() if n not in online)
        return self._wait <= MAX_REWAIT_SECONDS and answered >= at_least and not away

    def _invite(self, nodes: list[int], *, hurry: bool) -> bool:
        """Invite some of the online nodes; return True if any answered.

        With `hurry`, nobody waits, and answers are taken as they come. A slow node is invited again after exponentially growing
        pauses. A client caches its prepared data and its refusal, so its next answer is fast.
        """
        if hurry:
            self._post(nodes)
            replies, self._came = [one for one in self._came if one.metadata.src_node_id in self._slow], []
        else:
            replies = [*self._ask(self._invitations(nodes), ANSWER_SECONDS)] if nodes else []
        answered = {self._take(reply) for reply in replies}
        if not hurry:
            self._postpone({*nodes} - answered)
        for node in answered:
            self._slow.pop(node, None)
        return bool(answered)

    def greet(self, grid: NodeDirectory) -> None:
        """Invite nodes that are new during an exchange; their answers are taken at the next gathering."""
        self._post(sorted({*grid.get_node_ids()} - self.roster.clients.keys() - self.roster.refused.keys()))

    def _post(self, nodes: Iterable[int]) -> None:
        """Invite nodes unless it is too early, and note the answers that have come since."""
        now = self._clock()
        nodes = [node for node in nodes if now >= self._slow.get(node, (-math.inf, 0.0))[0]]
        self._postpone(nodes)
        self._came += self._ask(self._invitations(nodes), 0.0) if nodes or self._slow else ()

    def _postpone(self, nodes: Iterable[int]) -> None:
        """Note when nodes are invited again if they do not answer."""
        for node in nodes:
            pause = min(2 * self._slow.get(node, (0.0, ANSWER_SECONDS / 2))[1], MAX_RETRY_SECONDS)
            self._slow[node] = self._clock() + pause, pause

    def _invitations(self, nodes: Iterable[int]) -> list[Message]:
        content = encode(self._invitation)
        return [limit_to(Message(content, node, ENROL), most) for node, most in self._limits(nodes).items()]

    def _limits(self, nodes: Iterable[int]) -> dict[int, int]:
        """Return node -> largest size of its answer in bytes, which may be that of a hub."""
        try:
            clients = self._names.most_clients(nodes)
        except WireError:  # a reason to refuse each of them once it answers
            clients = dict.fromkeys(nodes, 1)
        return {node: most * (ENROL_REPLY + HOSTED_BYTES) + MEGABYTE for node, most in clients.items()}

    def _take(self, reply: Message) -> int:
        """Enrol the sender of a reply, or all clients of a hub, or record its refusal; return its node."""
        node = reply.metadata.src_node_id
        before = self.roster.refused.get(node)
        try:
            if node not in self.roster.hosted and reply.has_content() and is_from_hub(reply.content):
                for hosted in self._hubs.admit(reply, self.roster.hosted):
                    self._take(hosted)
                return node
            client = accept(node, reply, self.roster.hosted.get(node, ""))
            client = replace(client, name=self._resolve(node, client.name))
            self.ledgers.check(node, client.ledger)
            self.roster.enrol(client)
        except WireError as refusal:
            self.roster.refuse(node, printable(str(refusal), MAX_REASON))
        reason = self.roster.refused.get(node, "")
        if reason and reason != before:
            self.roster.registered[node] = self._names.bound(node)
            self._explain(node, reason, wrote=reply.has_error())
        return node

    def _resolve(self, node: int, name: str) -> str:
        """Return the name under which a node is enrolled.

        Raises:
            WireError: The name belongs to another key, or the client is forgotten.
        """
        name = self._names.resolve(node, name)
        if self._forgets(name):
            raise WireError(FORGOTTEN)
        return name

    def _explain(self, node: int, reason: str, *, wrote: bool) -> None:
        """Report the reason of a refusal, also to the client unless it wrote it; nobody waits for its answer."""
        client = self.roster.name(node)
        self._alike[reason] += 1
        if str(number := self._alike[reason]).strip("0") == "1":  # 1, 10, 100, …
            others = f" and {count(number - 1, 'other client')}" if number > 1 else ""
            log.warning("%s%s refused: %s", client, others, reason)
        if (client, reason) not in self._reported:
            self._reported.add((client, reason))
            self.on_refusal(Refusal(client=client, reason=reason))
        if not wrote:
            self._came += self._ask([Message(encode(replace(self._invitation, refusal=reason)), node, ENROL)], 0.0)
