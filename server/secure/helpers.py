"""Exchange with the helpers of a run: requests are repeated until each has answered."""

import logging
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeVar

from flwr.app import Message
from flwr.serverapp import Grid

from common.errors import QuorumError, RefusedError, WireError
from common.secure.cards import HelperRoster, NodeCard
from common.secure.masking import MASKED
from common.secure.norms import share_size
from common.secure.terms import SumTerms
from common.text import printable
from common.wire.codec import decode, encode
from common.wire.messages import HELPER, REFUSED, HelperReply, HelperRequest, OpenRequest, Payload, PrepareRequest
from server.exchange.grid import Exchange, Liveness, PollingGrid, RoundLimits, limit_to
from server.round.checks import SMALL_REPLY
from server.secure.store import opened_size

log = logging.getLogger("fedloom.server")

ReplyT = TypeVar("ReplyT", bound=Payload)

TRIES = 4
"""Number of times that a helper is asked, each for `secure-sums.deadline` seconds."""

NAME_BYTES = 16
"""Bytes of a name in a list, beside its characters."""

DISMISSAL_SECONDS = 5.0  # for the answer to the last message of a run
FIRST_PAUSE_SECONDS, PAUSE_GROWTH, MAX_PAUSE_SECONDS = 0.05, 1.5, 2.0  # between two requests to absent helpers


class HelperExchange:
    """Exchange with helpers by name.

    Args:
        grid: Connection to all nodes.
        request: Question whose answer is a node's card.
        deadline: Seconds that an answer may take.
        liveness: Record of heartbeats.
    """

    def __init__(self, grid: Grid, request: HelperRequest, deadline: float, liveness: Liveness) -> None:
        self._grid, self._request, self._deadline, self._liveness = grid, request, deadline, liveness
        self.cards: dict[int, NodeCard | None] = {}
        """Node -> its card; None for a node that does not help."""
        self.helping: set[int] = set()
        """Nodes that help and hold no data; the set is kept up to date."""
        self.exchanges: list[Exchange] = []
        """Exchanges since the list was last emptied."""

    @property
    def online(self) -> frozenset[int]:
        """Connected nodes, without those that send no heartbeats."""
        return frozenset(self._liveness.audible(self._grid.get_node_ids()))

    def call(self, seconds: float) -> None:
        """Ask all connected nodes that were not asked before for their cards."""
        nodes = sorted(self.online - self.cards.keys())
        for message in self.send(dict.fromkeys(nodes, self._request), HELPER, seconds):
            node = message.metadata.src_node_id
            card = self.cards[node] = _card_of(message, self._request.run)
            self.helping.discard(node)
            if card and card.serves == "only":
                self.helping.add(node)

    def renew(self, roster: HelperRoster) -> HelperRoster:
        """Return the roster with the keys that its helpers have now.

        Raises:
            QuorumError: A helper does not answer, or has another identity; names the helper.
        """
        try:
            answers = self.ask(dict.fromkeys(roster.names, self._request), HELPER, HelperReply)
            renewed = HelperRoster.read([answers[name].card for name in roster.names], self._request.run)
        except (RefusedError, WireError) as error:
            raise QuorumError(f"{error}; continue with --resume --new-helpers") from None
        if renewed.digest != roster.digest:
            raise QuorumError("a helper has another identity than before; continue with --resume --new-helpers")
        return renewed

    def dismiss(self, names: Collection[str]) -> None:
        """Let helpers delete their keys of the run; those that do not answer keep them."""
        over = replace(self._request, over=True)
        nodes = [node for node, card in self.cards.items() if card and card.name in names]
        self.send(dict.fromkeys(nodes, over), HELPER, min(self._deadline, DISMISSAL_SECONDS))

    def ask(self, requests: Mapping[str, Payload], kind: str, reply: type[ReplyT]) -> dict[str, ReplyT]:
        """Return each helper's answer; those that do not answer are asked again.

        Raises:
            RefusedError: A helper refuses, or answers with another message; names the helper.
            QuorumError: A helper did not answer in time; names the helper.
        """
        answers: dict[str, ReplyT] = {}
        end, pause = time.monotonic() + TRIES * self._deadline, FIRST_PAUSE_SECONDS
        while missing := {name: one for name, one in requests.items() if name not in answers}:
            nodes = self._locate(missing)
            names = {node: name for name, node in nodes.items()}
            sent = {nodes[name]: request for name, request in missing.items() if name in nodes}
            for message in self.send(sent, kind, self._deadline):
                name = names[message.metadata.src_node_id]
                if not _has_failed(message, name):
                    answers[name] = _read(message, reply, name)
            silent = sorted(requests.keys() - answers.keys())
            if silent and time.monotonic() >= end:
                raise QuorumError(f"helper '{silent[0]}' does not answer; start it and continue with --resume")
            if silent:
                time.sleep(pause)
                pause = min(pause * PAUSE_GROWTH, MAX_PAUSE_SECONDS)
        return answers

    def _locate(self, names: Mapping[str, Payload]) -> dict[str, int]:
        """Return helper -> connected node; nodes that are new are asked for their cards."""
        online = self.online
        self.cards = {node: card for node, card in self.cards.items() if node in online}
        if not names.keys() <= {card.name for card in self.cards.values() if card}:
            self.call(self._deadline)
        return {card.name: node for node, card in self.cards.items() if card and card.name in names}

    def send(self, requests: Mapping[int, Payload], kind: str, seconds: float = 0.0) -> list[Message]:
        """Return the answers of nodes that come within a number of seconds; 0: the deadline of a helper."""
        if not requests:
            return []
        contents = {id(request): encode(request) for request in requests.values()}
        messages = [
            limit_to(Message(contents[id(request)], node, kind), _limit(request)) for node, request in requests.items()
        ]
        grid = PollingGrid(
            self._grid,
            RoundLimits(len(messages), seconds or self._deadline, 0.0),
            self.exchanges.append,
            liveness=self._liveness,
        )
        return grid.send_and_receive(messages)


def _limit(request: Payload) -> int:
    """Return the largest size of a helper's answer in bytes: names of clients, or the sum of their masks."""
    names = sum(len(name) + NAME_BYTES for name in getattr(request, "clients", ()))
    numbers = 0
    if isinstance(request, OpenRequest):
        numbers = opened_size(SumTerms.from_json(request.terms)) * MASKED.itemsize
    if isinstance(request, PrepareRequest) and any(request.commitments):
        numbers = len(request.clients) * share_size(SumTerms.from_json(request.terms).size)
    return SMALL_REPLY + names + numbers


def _card_of(message: Message, run: str) -> NodeCard | None:
    try:
        text = decode(HelperReply, message.content).card if message.has_content() else ""
        card = NodeCard.from_json(text) if text else None
    except WireError as error:
        log.warning("node %d: its card is not valid: %s", message.metadata.src_node_id, printable(str(error)))
        return None
    return card if card and card.run == run else None


def _has_failed(message: Message, name: str) -> bool:
    """Return True if the helper failed and may be asked again.

    Raises:
        RefusedError: The helper refuses.
    """
    if not message.has_error():
        return False
    reason = printable(message.error.reason or f"error {message.error.code}", 200)
    if message.error.code == REFUSED:
        raise RefusedError(f"helper '{name}' refuses: {reason}")
    log.warning("helper '%s' failed: %s", name, reason)
    return True


def _read(message: Message, reply: type[ReplyT], name: str) -> ReplyT:
    try:
        return decode(reply, message.content)
    except WireError as error:
        raise RefusedError(f"helper '{name}' sent another answer: {printable(str(error), 200)}") from None
