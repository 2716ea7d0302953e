"""Log of a gateway: a line for each request, and for each client with a new reason."""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from flwr.app import Context, Error, Message

from client.journal import RequestEntry
from client.node.observer import Observer
from client.owner.control import OwnerControl
from client.owner.entry import describe_request
from client.owner.hub_view import DONE, hub_line
from common.text import printable
from common.wire.codec import Outline, outline
from common.wire.hubs import is_from_hub, split_answers
from common.wire.messages import ENROL

_log = logging.getLogger("fedloom.node")


class GatewayView(Observer):
    """Observer that logs requests, and follows the control files of the gateway's folder.

    Args:
        address: Address of the server above.
        name: Name of the gateway.
        control: Control files.
        has_fault: Function that returns True once the gateway's own server has ended.
        on_event: Callback with one line of text.
    """

    def __init__(
        self,
        address: str,
        name: str,
        control: OwnerControl,
        has_fault: Callable[[], bool],
        on_event: Callable[[str], None] = _log.info,
    ) -> None:
        super().__init__(address, name, on_event)
        self._control, self._has_fault = control, has_fault
        self._entry, self._lines = RequestEntry("", "", name), list[str]()
        self._reasons: dict[str, str] = {}

    @property
    def leaves(self) -> bool:
        """True if the operator has asked this gateway to leave, or it has lost its own server."""
        return self._control.leaves or self._has_fault()

    def check(self, message: Message) -> None:
        """Accept a message unless the operator has paused the gateway; enrolments are answered in any case.

        Raises:
            RefusedError: The gateway is paused.
        """
        if message.metadata.message_type != ENROL:
            self._control.check_not_paused()

    def begin(self, message: Message, context: Context) -> None:
        """Describe a request."""
        request = outline(message.content) if message.has_content() else Outline()
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._entry = describe_request(message, request, self.client, now)

    def finish(self, reply: Message, seconds: float) -> None:
        """Compose the lines of a reply that is about to be sent."""
        if not reply.has_content() or not is_from_hub(reply.content):
            self._lines = [f"request refused: {printable(reply.error.reason or '')}"] if reply.has_error() else []
            return
        answers = split_answers(reply.content)
        reasons = {name: one.reason or "no reason" for name, one in answers.items() if isinstance(one, Error)}
        entries = [replace(self._entry, client=name, refused=reasons.get(name, "")) for name in answers]
        sent = outline(reply.content).size
        self._lines = [hub_line(entries, seconds, sent)] if self._entry.asked in DONE else []
        new = {name: reason for name, reason in reasons.items() if self._reasons.get(name) != reason}
        self._lines += [f"{name} left out: {printable(reason)}" for name, reason in new.items()]
        self._reasons = {name: reason for name, reason in self._reasons.items() if name not in answers} | reasons

    def acknowledge(self) -> None:
        """Log the request."""
        for line in self._lines:
            self.report(line)
