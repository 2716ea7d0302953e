"""Observer of a resident client: callbacks on its connection and on its requests."""

import logging
import time
from collections.abc import Callable

from flwr.app import Context, Message

from client.node.failures import ServerAwayError
from common.errors import FedloomError

_log = logging.getLogger("fedloom.node")


class Observer:
    """Log of a connection, one text per change; requests are not observed.

    Without a name of the client, it has the node id.
    """

    def __init__(self, address: str, client: str = "", on_event: Callable[[str], None] = _log.info) -> None:
        self.address, self.client, self._on_event = address, client, on_event
        self._was_connected, self._last = False, ""
        self._attempts, self._away_since = 0, ""
        self._fault: type[FedloomError] = FedloomError

    def connected(self, node_id: int) -> None:
        """Log that the server has admitted the node."""
        again = " again" if self._was_connected else ""
        self._attempts, self._was_connected = 0, True
        self.report(f"connected{again} to {self.address} as {self.client or f'node {node_id}'}")

    def away(self, error: FedloomError) -> None:
        """Log failed attempts at growing distances, for each kind of error the 1st, 3rd, 10th and so on."""
        self._attempts = self._attempts + 1 if type(error) is self._fault else 1
        self._fault = type(error)
        self._away_since = self._away_since if self._attempts > 1 else time.strftime("%H:%M:%S")
        if str(self._attempts).rstrip("0") in ("1", "3"):
            gone = self._was_connected and isinstance(error, ServerAwayError)
            reason = f"{self.address} does not answer" if gone else str(error)
            times = "once" if self._attempts == 1 else f"{self._attempts:,} times"
            self.report(f"{reason}; waiting (tried {times}, since {self._away_since})")

    def left(self) -> None:
        """Log that the client has left."""
        self.report(f"left {self.address}")

    def unanswered(self, error: FedloomError) -> None:
        """Log that a message cannot be read, or that its reply has no receiver."""
        self.report(f"a message is left unanswered: {error}")

    def report(self, text: str) -> None:
        """Pass on a text that differs from the previous one."""
        if text != self._last:
            self._on_event(text)
        self._last = text

    def largest_request(self, run: int) -> int:
        """Return the largest size of a run's requests with a model, in bytes; 0 if it is not known."""
        return 0

    @property
    def leaves(self) -> bool:
        """True if the client must leave before the next message."""
        return False

    def check(self, message: Message) -> None:
        """Accept a message.

        Raises:
            RefusedError: The client's owner forbids an answer now.
        """

    def begin(self, message: Message, context: Context) -> None:
        """Note a message that is about to be answered."""

    def finish(self, reply: Message, seconds: float) -> None:
        """Note a reply that is about to be sent."""

    def acknowledge(self) -> None:
        """Note that the server has received the reply."""

    def idle(self) -> None:
        """Note that no message waits."""
