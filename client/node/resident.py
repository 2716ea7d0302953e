"""Resident client: one process with data and model in memory that polls for messages."""

import ctypes
import logging
import math
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from types import FrameType

from flwr.app import Context, Error, Message

from client.node.failures import NotAdmittedError, RunOverError, Server, ServerAwayError
from client.node.flower import Config, Fleet, RunContexts
from client.node.observer import Observer
from common.errors import FedloomError, RefusedError, WireError, public_reason
from common.wire.codec import outline
from common.wire.messages import ENROL, REFUSED

FIRST_RETRY_SECONDS, RETRY_GROWTH, MAX_RETRY_SECONDS = 0.1, 1.05, 2.5  # seconds between two attempts to reach a server

LEAST_CAP_SECONDS, MOST_CAP_SECONDS = 2.0, 30.0
"""Longest waits that a server may ask for."""


@dataclass(frozen=True)
class Polling:
    """Adaptive polling schedule.

    Args:
        head_start: Share of the shortest recent time between a reply and the next message before the first poll. Rounds
            are regular, and polls before other clients have finished slow them down.
        first: Seconds to wait after the first empty answer.
        growth: Factor from one wait to the next; a message is detected at most about (growth − 1) of the time since the
            first poll too late.
        cap: Longest wait in seconds, reached after long idle times.
        courtesy: Minimum wait as a multiple of the last answer's time, so that a busy server is polled less.
        jitter: Relative random spread of waits, so that clients do not poll in lockstep.
    """

    head_start: float = 0.6
    first: float = 0.004
    growth: float = 1.25
    cap: float = 2.0
    courtesy: float = 3.0
    jitter: float = 0.2

    def capped(self, seconds: float) -> "Polling":
        """Return the schedule with the longest wait that a server asks for; 0 keeps it."""
        return replace(self, cap=min(max(seconds, LEAST_CAP_SECONDS), MOST_CAP_SECONDS)) if seconds > 0 else self

    def wait_after_reply(self, rhythm: float, random: Random) -> float:
        """Return seconds to wait after a reply if the next message usually arrives within `rhythm` seconds."""
        return self._spread(min(self.cap, self.head_start * rhythm), random)

    def wait_after_nothing(self, empty: int, took: float, random: Random) -> float:
        """Return seconds to wait after `empty` ≥ 1 empty answers, the last of which took `took` seconds."""
        steps = min(empty - 1, 200)  # the power must not overflow in a client that is idle for weeks
        return self._spread(min(self.cap, max(self.first * self.growth**steps, self.courtesy * took)), random)

    def _spread(self, wait: float, random: Random) -> float:
        return wait * random.uniform(1 - self.jitter, 1 + self.jitter)


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
PAUSES_REMEMBERED = 4  # pauses between a reply and the next message; a round may send two kinds

_log = logging.getLogger("fedloom.node")


def run_resident(
    app: Answer,
    server: Server,
    *,
    stop: threading.Event,
    node_config: Mapping[str, bool | float | int | str] | None = None,
    polling: Polling = Polling(),
    patience: float = 30.0,
    random: Random | None = None,
    on_event: Callable[[str], None] = _log.info,
    observer: Observer | None = None,
) -> None:
    """Serve the federation with `app` until `stop` is set.

    An absent server is waited for without a limit. A server that does not admit the node's key is polled for `patience`
    seconds: the key may be registered soon, or a session elsewhere may expire after a crash (20 s). Work in progress when
    `stop` is set is finished and sent, since it has already cost privacy budget. `stop` is a request to leave (see
    `leave_on_signals`), `random` draws the jitter of waits alone, and an observer is in place of `on_event`.

    Raises:
        ConnectError: Retrying cannot help: wrong CA, expired certificate, key not admitted, not a Fleet API.
    """
    random, observer = random or Random(), observer or Observer(server.address, on_event=on_event)
    session = _Session(app, dict(node_config or {}), polling, random, stop, observer)
    retries, refused_since = retry_pauses(random), math.inf
    while not stop.is_set():
        try:
            with Fleet(server, stop) as fleet:
                observer.connected(fleet.node_id)
                retries, refused_since = retry_pauses(random), math.inf
                session.serve(fleet)
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

    def __init__(
        self,
        app: Answer,
        node_config: Config,
        polling: Polling,
        random: Random,
        stop: threading.Event,
        observer: Observer,
    ) -> None:
        self._app, self._contexts, self._polling, self._random = app, RunContexts(node_config), polling, random
        self._stop, self._observer = stop, observer
        self._unsent: tuple[Message, float] | None = None
        self._empty, self._replied = 0, time.monotonic()
        self._pauses = deque([0.0], maxlen=PAUSES_REMEMBERED)

    def serve(self, fleet: Fleet) -> None:
        """Answer messages until `stop` is set; wait for an absent server.

        Raises:
            NotAdmittedError: The server no longer recognizes the node.
        """
        retries = retry_pauses(self._random)
        while not self._stop.is_set():
            try:
                wait = self._step(fleet)
                self._observer.reached(fleet.node_id)
                retries = retry_pauses(self._random)
                self._wait(wait)
            except ServerAwayError as error:
                self.wait_for_server(error, next(retries))

    def wait_for_server(self, error: FedloomError, seconds: float) -> None:
        """Wait before the next attempt to reach the server; a stop request ends the wait."""
        if not self._stop.is_set():
            self._observer.away(error)
        self._wait(seconds)

    def _wait(self, seconds: float) -> None:
        if self._observer.leaves:
            self._stop.set()
        self._stop.wait(seconds)

    def _step(self, fleet: Fleet) -> float:
        """Send, receive and answer once; return the seconds to wait before the next step."""
        start = time.monotonic()
        try:
            self._send(fleet)
            message = fleet.receive()
            if message is not None:
                return self._answer(fleet, message)
        except (RunOverError, WireError) as error:
            self._observer.unanswered(error)
        self._observer.idle()
        self._empty += 1
        return self._polling.wait_after_nothing(self._empty, time.monotonic() - start, self._random)

    def _answer(self, fleet: Fleet, message: Message) -> float:
        start = time.monotonic()
        self._pauses.append(start - self._replied)
        context = self._contexts.build(fleet, message.metadata.run_id)
        self._unsent = self._reply(message, context), time.monotonic() - start
        self._observer.finish(*self._unsent)
        self._send(fleet)
        release_memory()
        self._empty, self._replied = 0, time.monotonic()
        self._polling = self._polling.capped(_poll_cap(message))
        return self._polling.wait_after_reply(min(self._pauses), self._random)

    def _send(self, fleet: Fleet) -> None:
        if self._unsent is None:
            return
        try:
            fleet.send(*self._unsent)
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


def _poll_cap(message: Message) -> float:
    """Return the longest pause that an invitation asks for; 0 without one."""
    asks = message.metadata.message_type == ENROL and message.has_content()
    seconds = outline(message.content).values.get("poll_cap") if asks else None
    return seconds if isinstance(seconds, float) else 0.0
