"""Flower ClientApp of a helper: decode -> service -> encode. It holds no data and imports no torch."""

import time
from collections.abc import Callable

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from client.node.flower import failure_reply
from client.node.observer import Observer
from client.secure.helper.helper_service import HOUR, HelperService, HelperState
from common.errors import RefusedError
from common.text import printable
from common.wire.codec import decode, encode
from common.wire.messages import (
    ASSIGN,
    ENROL,
    HELPER,
    NAMES,
    OPEN,
    PREPARE,
    HelperPayload,
    HelperRequest,
    OpenRequest,
    PrepareRequest,
)

Respond = Callable[[Message, Context], Message]
"""App of a node."""

FORGET_DAYS = 30.0
"""Days without a message after which a helping client deletes the keys of a run."""

HELPER_TYPES = (HELPER, PREPARE, OPEN)
"""Flower message types that `answer` accepts."""


def make_app(service: HelperService) -> ClientApp:
    """Return the app of a node that only helps."""
    app = ClientApp()

    def handle(message: Message, context: Context) -> Message:
        return answer(service, message)

    def refuse(message: Message, context: Context) -> Message:
        return failure_reply(message, RefusedError("this node is a helper without data"))

    for kind in HELPER_TYPES:
        app.query(kind.partition(".")[2])(handle)
    for kind in (ENROL, NAMES, ASSIGN):
        app.query(kind.partition(".")[2])(refuse)
    app.train()(refuse)
    app.evaluate()(refuse)
    return app


def help_too(service: HelperService, respond: Respond) -> Respond:
    """Return the app of a client whose node also helps.

    Keys of runs without a message for `FORGET_DAYS` days are deleted when another run asks for a card.
    """

    def handle(message: Message, context: Context) -> Message:
        kind = message.metadata.message_type
        if kind not in HELPER_TYPES:
            return respond(message, context)
        if kind == HELPER:
            service.state.forget(FORGET_DAYS)
        return answer(service, message)

    return handle


def answer(service: HelperService, message: Message) -> Message:
    """Return a helper's answer; a failure is an answer too."""
    try:
        return Message(encode(_REQUESTS[message.metadata.message_type](service, message)), reply_to=message)
    except Exception as error:
        return failure_reply(message, error)


_REQUESTS: dict[str, Callable[[HelperService, Message], HelperPayload]] = {
    HELPER: lambda service, message: service.card(decode(HelperRequest, message.content)),
    PREPARE: lambda service, message: service.prepare(decode(PrepareRequest, message.content)),
    OPEN: lambda service, message: service.open(decode(OpenRequest, message.content)),
}


class HelperObserver(Observer):
    """Log of a helper's connection; keys of forgotten runs are deleted hourly while no message waits.

    A run is forgotten after `days` without a message; the clock has monotonic seconds.
    """

    def __init__(
        self, address: str, helper: str, state: HelperState, days: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(address, helper)
        self._state, self._days, self._clock, self._looked = state, days, clock, float("-inf")

    def idle(self) -> None:
        """Delete the keys of runs without a message for too long."""
        now = self._clock()
        if now - self._looked < HOUR:
            return
        self._looked = now
        for run in self._state.forget(self._days):
            self.report(f"run '{printable(run, 80)}': keys deleted after {self._days:g} days without a message")
