"""Owner's view on a resident client: journal, log and control files."""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from flwr.app import Context, Message

from client.journal import Connection, ConnectionEntry, RequestEntry, RequestJournal
from client.node.observer import Observer
from client.owner.control import OwnerControl
from client.owner.entry import describe_reply, describe_request, enrolment_of
from client.owner.sentences import HOLD_SECONDS, RoundLog
from client.privacy.epsilon_spent import EpsilonSpent, read_epsilon
from common.errors import FedloomError
from common.wire.codec import Outline, outline
from common.wire.messages import ENROL
from common.wire.sums import HELPER, OPEN, PREPARE

if TYPE_CHECKING:
    from client.session import Session

_log = logging.getLogger("fedloom.node")

OpenSession = Callable[[Context], "Session"]
"""Returns the session of the client that received a message."""


class OwnerView(Observer):
    """Observer that writes the journal and the log, and follows the control files.

    Args:
        address: Address of the server.
        client: Name of the client; empty for its node id.
        journal: Journal of the state folder.
        control: Control files of the state folder.
        open_session: Function that returns the session of a message's receiver.
        on_event: Callback with one line of text.
    """

    def __init__(
        self,
        address: str,
        client: str,
        journal: RequestJournal,
        control: OwnerControl,
        open_session: OpenSession,
        on_event: Callable[[str], None] = _log.info,
    ) -> None:
        super().__init__(address, client, on_event)
        self._journal, self._control, self._open_session = journal, control, open_session
        self._entry, self._sent, self._log = RequestEntry("", "", client), False, RoundLog()
        self._session: Session | None = None
        self._enrolment, self._before = "", 0.0

    def connected(self, node_id: int) -> None:
        """Log and write that the server has admitted the node."""
        super().connected(node_id)
        self._write_connection("connected")

    def away(self, error: FedloomError) -> None:
        """Log failed attempts, and write the first."""
        self._report_rounds()
        super().away(error)
        if self._attempts == 1:
            self._write_connection("away", str(error))

    def left(self) -> None:
        """Log and write that the client has left."""
        self._report_rounds()
        super().left()
        self._write_connection("left")

    @property
    def leaves(self) -> bool:
        """True if the owner has asked this client to leave."""
        return self._control.leaves

    def check(self, message: Message) -> None:
        """Accept a message unless the owner has paused the client.

        Enrolments are answered in any case, and so are requests to its helper: a sum of other clients would be lost.

        Raises:
            RefusedError: The client is paused.
        """
        if message.metadata.message_type not in (ENROL, HELPER, PREPARE, OPEN):
            self._control.check_not_paused()

    def begin(self, message: Message, context: Context) -> None:
        """Describe a request, and note the ε spent before."""
        request = outline(message.content) if message.has_content() else Outline()
        self._entry = describe_request(message, request, self.client, _now())
        self._enrolment, self._session = enrolment_of(request), None
        self._before = 0.0
        with suppress(Exception):  # the app reports the same error in its reply
            self.check(message)
            self._session = self._open_session(context)
            if self._entry.asked != "enrol":
                self._session.runs.find(self._enrolment)
                epsilon = self._epsilon()
                self._before = epsilon.run if epsilon else 0.0

    def finish(self, reply: Message, seconds: float) -> None:
        """Write the entry of a reply that is about to be sent."""
        run = None
        if self._session and self._session.runs.is_open(self._enrolment):
            run = self._session.runs.find(self._enrolment)
        self._entry = describe_reply(self._entry, reply, run, seconds)
        if epsilon := self._epsilon() if run else None:
            self._entry = replace(
                self._entry,
                epsilon_spent=max(0.0, epsilon.run - self._before),
                epsilon_run=epsilon.run_limit,
                epsilon_left_run=epsilon.left_run,
                epsilon_left_total=epsilon.left_total,
            )
        self._journal.write(self._entry)

    def acknowledge(self) -> None:
        """Write the entry again, and log the round if it is complete."""
        self._entry = replace(self._entry, acknowledged=_now())
        self._journal.write(self._entry)
        for line in self._log.add(self._entry):
            self.report(line)

    @property
    def entry(self) -> RequestEntry:
        """Entry of the last request."""
        return self._entry

    def idle(self) -> None:
        """Log a round without an evaluation."""
        for line in self._log.flush(after=HOLD_SECONDS):
            self.report(line)

    def _report_rounds(self) -> None:
        for line in self._log.flush():
            self.report(line)

    def _epsilon(self) -> EpsilonSpent | None:
        session = self._session
        if session is None:
            return None
        with suppress(FedloomError):
            return read_epsilon(session.releaser.budget, session.config(self._enrolment), self._enrolment)
        return None

    def _write_connection(self, connection: Connection, reason: str = "") -> None:
        self._journal.write(ConnectionEntry(_now(), self.client, connection, self.address, reason))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
