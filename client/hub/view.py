"""Operator's view on a hub: a journal entry for each client, and one line of text a round for all."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from flwr.app import Context, Error, Message

from client.hub.hub import Hub
from client.node.observer import Observer
from client.owner.control import OwnerControl
from client.owner.journal import RequestEntry, RequestJournal
from client.owner.view import OpenSession, OwnerView
from client.session import Session
from common.errors import FedloomError, WireError
from common.text import count, printable, size
from common.wire.hubs import MAX_NAME, addressees, describe_sum, is_from_hub, split_answers, sum_of
from common.wire.messages import ENROL

_log = logging.getLogger("fedloom.node")

DONE = {
    "enrol": "take part",
    "names": "listed names",
    "assign": "compared models",
    "train": "trained",
    "evaluate": "measured",
}
"""Verb of a line, by kind of the request."""


class HubView(Observer):
    """Observer that writes the journals of a hub's clients and its log, and follows its control files."""

    def __init__(
        self,
        address: str,
        name: str,
        hub: Hub,
        journal: RequestJournal,
        control: OwnerControl,
        on_event: Callable[[str], None] = _log.info,
    ) -> None:
        super().__init__(address, name, on_event)
        self._control, self._journal = control, journal
        self._views = {
            client: OwnerView(address, client, journal, control, _returns(session), lambda line: None)
            for client, session in hub.sessions.items()
        }
        self._message: Message | None = None
        self._asked: list[OwnerView] = []
        self._seconds, self._shared, self._reasons = 0.0, 0, dict[str, str]()

    def connected(self, node_id: int) -> None:
        """Log and write that the server has admitted the hub."""
        super().connected(node_id)
        self._tell(lambda view: view.connected(node_id))

    def away(self, error: FedloomError) -> None:
        """Log failed attempts, and write the first."""
        super().away(error)
        self._tell(lambda view: view.away(error))

    def left(self) -> None:
        """Log and write that the hub has left."""
        super().left()
        self._tell(lambda view: view.left())

    def _tell(self, change: Callable[[OwnerView], None]) -> None:
        """Write a change of the connection to the journal of each client, all at once."""
        with self._journal.together():
            for view in self._views.values():
                change(view)

    def largest_request(self, run: int) -> int:
        """Return the largest size of a request with a model and names of clients; 0 if it is not known."""
        most = max((view.largest_request(run) for view in self._views.values()), default=0)
        return most + len(self._views) * MAX_NAME if most else 0

    @property
    def leaves(self) -> bool:
        """True if the operator has asked this hub to leave."""
        return self._control.leaves

    def check(self, message: Message) -> None:
        """Accept a message unless the operator has paused the hub; a paused hub answers enrolments.

        Raises:
            RefusedError: The hub is paused, or asks to be forgotten.
        """
        if message.metadata.message_type == ENROL:
            self._control.check_not_forgotten()
        else:
            self._control.check_not_paused()

    def begin(self, message: Message, context: Context) -> None:
        """Describe a request in the journal of each client that it is for."""
        self._message = message
        self._asked = [self._views[name] for name in self._names(message) if name in self._views]
        for view in self._asked:
            view.begin(message, context)

    def finish(self, reply: Message, seconds: float) -> None:
        """Write the entries of a reply that is about to be sent."""
        self._seconds = seconds
        answers, total = {}, None
        if reply.has_content() and is_from_hub(reply.content):
            answers, total = split_answers(reply.content), sum_of(reply.content)
        self._shared, summed = (len(total.content), {*total.clients}) if total else (0, set())
        with self._journal.together():
            for view in self._asked:
                answer = answers.get(view.client)
                if self._message is None or answer is None:
                    view.finish(reply, seconds)
                elif isinstance(answer, Error):
                    view.finish(Message(error=answer, reply_to=self._message), seconds)
                else:
                    content = describe_sum(answer, total) if total and view.client in summed else answer
                    view.finish(Message(content=content, reply_to=self._message), seconds)

    def acknowledge(self) -> None:
        """Write the entries again, and log the request and each new reason of a client."""
        with self._journal.together():
            for view in self._asked:
                view.acknowledge()
        for line in self._lines([view.entry for view in self._asked]):
            self.report(line)

    def _lines(self, entries: Sequence[RequestEntry]) -> Iterator[str]:
        if entries and entries[0].asked in DONE:
            yield hub_line(entries, self._seconds, self._shared)
        new = {
            one.client: one.refused for one in entries if one.refused and one.refused != self._reasons.get(one.client)
        }
        self._reasons |= {entry.client: entry.refused for entry in entries}
        for reason in dict.fromkeys(new.values()):
            clients = [client for client, why in new.items() if why == reason]
            who = clients[0] if len(clients) == 1 else count(len(clients), "client")
            yield f"{who} left out: {printable(reason)}"

    def _names(self, message: Message) -> Sequence[str]:
        with suppress(WireError):  # the hub replies with the same error
            return (message.has_content() and addressees(message.content)) or [*self._views]
        return [*self._views]


def _returns(session: Session) -> OpenSession:
    return lambda context: session


def hub_line(entries: Sequence[RequestEntry], seconds: float, shared: int = 0) -> str:
    """Return the line of one request to the clients of a hub, which sent `shared` bytes beside their own."""
    last = max(entries, key=lambda entry: entry.rounds)
    of = f"/{last.rounds}" if last.rounds else ""
    in_round = f" round {last.round}{of}" if last.round else ""
    done = sum(not entry.refused for entry in entries)
    sent = size(shared + sum(entry.sent_bytes for entry in entries))
    who = f"{done:,} of {count(len(entries), 'client')}"
    return f"run {printable(last.run, 80)}{in_round}: {who} {DONE[last.asked]}, {seconds:.1f} s, sent {sent}"
