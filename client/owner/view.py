"""Owner's view on a resident client: journal entries of its messages, log and control files."""

import logging
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast, get_args

from flwr.app import Context, Message

from client.node.observer import Observer
from client.owner.control import OwnerControl
from client.owner.journal import Asked, Connection, ConnectionEntry, RequestEntry, RequestJournal
from client.owner.sentences import HOLD_SECONDS, RoundLog
from client.owner.status import EpsilonSpent, read_epsilon
from common.config.parse import read_names
from common.errors import FedloomError
from common.text import printable
from common.wire.codec import Outline, outline
from common.wire.messages import ENROL, HELPER, OPEN, PREPARE, EnrolRequest

if TYPE_CHECKING:
    from client.enrolment import EnrolledRun
    from client.session import Session

MAX_NAME_LENGTH = 200
"""Maximum number of characters of a server's name in an entry."""

CONSTANTS = {"loss": 0.0, "examples": 1.0}
"""Values of fields that carry no data in replies of a run with noise."""


def describe_request(message: Message, request: Outline, client: str, time: str) -> RequestEntry:
    """Return the entry of a request of any server; texts of the server are cut and made printable."""
    kind = message.metadata.message_type.rpartition(".")[2]
    asked = cast(Asked, kind) if kind in get_args(Asked) else ""
    task, method = _names(request)
    number = request.values.get("round", 0)
    return RequestEntry(
        id=printable(message.metadata.message_id, 64),
        time=time,
        client=client,
        run=printable(enrolment_of(request).partition(":")[0] or str(request.values.get("run", "")), MAX_NAME_LENGTH),
        round=number if isinstance(number, int) else 0,
        asked=asked,
        method=method,
        task=task,
        received_bytes=request.size,
    )


def describe_reply(entry: RequestEntry, reply: Message, run: "EnrolledRun | None", seconds: float) -> RequestEntry:
    """Return the entry with what the reply holds.

    `run` is None if the request has none.
    """
    entry = replace(entry, seconds=round(seconds, 3))
    if run:
        config = run.config
        entry = replace(entry, run=run.run, task=config.task, method=config.method, rounds=config.rounds)
        entry = replace(entry, records=run.learner.examples)
    if reply.has_error():
        return replace(entry, refused=reply.error.reason or "no reason")
    sent = outline(reply.content)
    has_noise = run is not None and run.config.privacy.unit != "none"
    noised, numbers = has_noise and entry.asked in ("train", "assign"), _numbers(sent.values, has_noise)
    return replace(entry, sent_bytes=sent.size, tensors=sent.shapes, clear=numbers, noised=noised)


def enrolment_of(request: Outline) -> str:
    """Return the enrolment that a request names, or starts; empty if there is none."""
    if request.payload == EnrolRequest.__name__:
        from client.enrolment import fingerprint

        run, config, catalogue = (str(request.values.get(field, "")) for field in ("run", "config", "catalogue"))
        helpers = request.values.get("helpers")
        cards = [str(card) for card in helpers] if isinstance(helpers, list) else []
        return fingerprint(EnrolRequest(run, config, catalogue, cards))
    return str(request.values.get("enrolment", ""))


def _names(request: Outline) -> tuple[str, str]:
    """Return task and method of an enrolment; empty texts for other requests."""
    try:
        task, method, *_ = read_names(str(request.values.get("config", "")))
    except Exception:  # the config of a server may be any text
        return "", ""
    return printable(task, MAX_NAME_LENGTH), printable(method, MAX_NAME_LENGTH)


def _numbers(values: dict[str, Any], has_noise: bool) -> dict[str, float]:
    """Return the numbers of a reply that no noise covers."""
    numbers = {k: float(v) for k, v in values.items() if isinstance(v, int | float) and not isinstance(v, bool)}
    hidden = CONSTANTS.items() if has_noise else ()
    return {
        k: v for k, v in numbers.items() if k not in ("round", "steps") and (k, v) not in hidden and not math.isnan(v)
    }


_log = logging.getLogger("fedloom.node")

OpenSession = Callable[[Context], "Session"]
"""Returns the session of the client that received a message."""


class OwnerView(Observer):
    """Observer that writes the journal and the log, and follows the control files."""

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
        self._run_id, self._largest = 0, dict[int, int]()

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

    def largest_request(self, run: int) -> int:
        """Return the largest size of a request with a model, by the run's model; 0 if it is not known."""
        return self._largest.get(run, 0)

    @property
    def leaves(self) -> bool:
        """True if the owner has asked this client to leave."""
        return self._control.leaves

    def check(self, message: Message) -> None:
        """Accept a message unless the owner has paused the client.

        A paused client answers enrolments and requests to its helper: a sum of other clients would be lost.

        Raises:
            RefusedError: The client is paused, or asks to be forgotten.
        """
        if message.metadata.message_type == ENROL:
            self._control.check_not_forgotten()
        elif message.metadata.message_type not in (HELPER, PREPARE, OPEN):
            self._control.check_not_paused()

    def begin(self, message: Message, context: Context) -> None:
        """Describe a request, and note the ε spent before."""
        request = outline(message.content) if message.has_content() else Outline()
        self._entry = describe_request(message, request, self.client, _now())
        self._enrolment, self._session, self._run_id = enrolment_of(request), None, message.metadata.run_id
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
            self._largest[self._run_id] = run.largest_request
        self._entry = describe_reply(self._entry, reply, run, seconds)
        if self._session:
            self._entry = replace(self._entry, contract=self._session.consent.hash)
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
        self._control.acknowledge()
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
