"""Resident client: one process with data and model in memory that waits for messages."""

import ctypes
import logging
import math
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from random import Random
from types import FrameType

from flwr.app import Context, Error, Message

from client.node.failures import ExcessError, NotAdmittedError, RunOverError, Server, ServerAwayError
from client.node.flower import Config, RunContexts
from client.node.observer import Observer
from client.node.stream import NodeStream
from common.errors import FedloomError, RefusedError, WireError, public_reason
from common.wire.messages import REFUSED

FIRST_RETRY_SECONDS, RETRY_GROWTH, MAX_RETRY_SECONDS = 0.1, 1.05, 2.5  # seconds between two attempts to reach a server


def retry_pauses(random: Random) -> Iterator[float]:
    """Yield the seconds to wait before the first, second, ... attempt to reach a server again."""
    wait = FIRST_RETRY_SECONDS
    while True:
        yield wait * random.uniform(0.8, 1.2)
        wait = min(RETRY_GROWTH * wait, MAX_RETRY_SECONDS)


def release_memory() -> None:
    """Return freed memory to the system; without this, glibc keeps the peak of a training step."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim:
        trim(0)


Answer = Callable[[Message, Context], Message]
CLIENT_APP_RAISED = 2  # Flower's ErrorCode for an app that failed
EXCESS_SECONDS = 10.0  # pause after a server sent more than it may
TASKS_REMEMBERED = 64  # requests that are not answered twice

_log = logging.getLogger("fedloom.node")


def run_resident(
    app: Answer,
    server: Server,
    *,
    stop: threading.Event,
    node_config: Mapping[str, bool | float | int | str] | None = None,
    patience: float = 30.0,
    random: Random | None = None,
    on_event: Callable[[str], None] = _log.info,
    observer: Observer | None = None,
) -> None:
    """Serve the federation with `app` until `stop` is set.

    An absent server is waited for without a limit. A server that does not admit the node's key is asked again for `patience`
    seconds, since the key may be registered soon. Work in progress when `stop` is set is finished and sent, since it has
    already cost privacy budget. `stop` is a request to leave (see `leave_on_signals`), `random` draws the jitter of waits
    alone, and an observer is in place of `on_event`.

    Raises:
        ConnectError: Retrying cannot help: wrong CA, expired certificate, key not admitted, not a door.
    """
    random, observer = random or Random(), observer or Observer(server.address, on_event=on_event)
    session = _Session(app, dict(node_config or {}), stop, observer)
    retries, refused_since = retry_pauses(random), math.inf
    while not stop.is_set():
        try:
            with NodeStream(server, stop, observer.largest_request) as stream:
                observer.connected(stream.node_id)
                retries, refused_since = retry_pauses(random), math.inf
                session.serve(stream)
        except ExcessError as error:
            session.wait_for_server(error, EXCESS_SECONDS * random.uniform(0.8, 1.2))
        except (ServerAwayError, NotAdmittedError) as error:
            refused_since = min(refused_since, time.monotonic()) if isinstance(error, NotAdmittedError) else math.inf
            if time.monotonic() > refused_since + patience:
                raise
            session.wait_for_server(error, next(retries))
    observer.left()


def leave_on_signals(stop: threading.Event) -> None:
    """Set `stop` on SIGTERM and SIGINT; a second signal ends the process at once."""

    def leave(number: int, frame: FrameType | None) -> None:
        stop.set()
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, leave)


class _Session:
    """State across connections: the app, each run's state and an unsent reply."""

    def __init__(self, app: Answer, node_config: Config, stop: threading.Event, observer: Observer) -> None:
        self._app, self._contexts = app, RunContexts(node_config)
        self._stop, self._observer = stop, observer
        self._unsent: tuple[Message, float] | None = None
        self._received: deque[str] = deque(maxlen=TASKS_REMEMBERED)
        self._has_freed = False

    def serve(self, stream: NodeStream) -> None:
        """Answer messages until `stop` is set.

        Raises:
            ServerAwayError: The connection has ended.
            NotAdmittedError: The server no longer recognizes the node.
        """
        while not self._stop.is_set():
            try:
                self._send(stream)
                message = stream.receive()
                if message is None:
                    self._rest()
                elif message.metadata.message_id not in self._received:  # else it came again on a new connection
                    self._answer(stream, message)
            except (RunOverError, WireError) as error:
                self._observer.unanswered(error)
            if self._observer.leaves:
                self._stop.set()

    def wait_for_server(self, error: FedloomError, seconds: float) -> None:
        """Wait before the next attempt to reach the server; a stop request ends the wait."""
        if not self._stop.is_set():
            self._observer.away(error)
        if self._observer.leaves:
            self._stop.set()
        self._stop.wait(seconds)

    def _answer(self, stream: NodeStream, message: Message) -> None:
        start = time.monotonic()
        self._received.append(message.metadata.message_id)
        context = self._contexts.build(stream.node_id, message.metadata.run_id)
        self._unsent = self._reply(message, context), time.monotonic() - start
        self._observer.finish(*self._unsent)
        self._send(stream)
        self._has_freed = True

    def _rest(self) -> None:
        """Note that no request waits, and give memory back, which would slow down fast rounds."""
        if self._has_freed:
            release_memory()
        self._has_freed = False
        self._observer.idle()

    def _send(self, stream: NodeStream) -> None:
        if self._unsent is None:
            return
        try:
            stream.send(self._unsent[0])
        except RunOverError:
            self._unsent = None
            raise
        self._unsent = None
        self._observer.acknowledge()

    def _reply(self, message: Message, context: Context) -> Message:
        try:
            self._observer.begin(message, context)
            self._observer.check(message)
            reply = self._app(message, context)
        except RefusedError as error:
            return Message(Error(code=REFUSED, reason=public_reason(error)), reply_to=message)
        except Exception as error:
            _log.exception("the app failed")
            return Message(Error(code=CLIENT_APP_RAISED, reason=public_reason(error)), reply_to=message)
        self._contexts.store(context)
        return reply
