"""Federation in one process with a client that lies, for the study and for tests."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Error, Message, RecordDict

from client.session import Session
from common.arrays import Arrays
from common.wire.codec import decode, encode
from common.wire.messages import ENROL, EVALUATE, TRAIN, EnrolReply, EvaluateReply, TrainReply
from deploy.simulation.grid import InProcessGrid

GIGABYTE = 10**9

Lie = Callable[[Message], Message | None]
"""Change of a client's reply; None sends nothing."""


class TypedGrid(InProcessGrid):
    """Grid that knows which type of message a reply answers."""

    def __init__(self, sessions: Mapping[int, Session], together: int = 1) -> None:
        super().__init__(sessions, together)
        self._kinds: dict[str, str] = {}

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Answer all messages, and remember their types."""
        messages = list(messages)
        pushed = super().push_messages(messages)
        self._kinds |= {m.metadata.message_id: m.metadata.message_type for m in messages}
        return pushed

    def kind_of(self, reply: Message) -> str:
        """Return the type of the message that a reply answers."""
        return self._kinds[reply.metadata.reply_to_message_id]


class LyingGrid(TypedGrid):
    """Grid in which one node changes its replies of a kind."""

    def __init__(self, sessions: Mapping[int, Session], liar: int, kind: str, lie: Lie, together: int = 1) -> None:
        super().__init__(sessions, together)
        self._liar, self._kind, self._lie = liar, kind, lie

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        """Return the replies, of which the liar's are false."""
        replies = super().pull_messages(message_ids)
        return [sent for reply in replies if (sent := self._send(reply)) is not None]

    def _send(self, reply: Message) -> Message | None:
        is_lie = self.kind_of(reply) == self._kind
        return self._lie(reply) if is_lie and reply.metadata.src_node_id == self._liar else reply


def _changed(reply: Message, content: RecordDict) -> Message:
    reply.__dict__["_content"] = content
    return reply


def trained(**changes: Any) -> Lie:
    """Return the lie with other fields of the training reply; a function gets the true value."""

    def lie(message: Message) -> Message:
        reply = decode(TrainReply, message.content)
        values = {key: value(getattr(reply, key)) if callable(value) else value for key, value in changes.items()}
        return _changed(message, encode(replace(reply, **values)))

    return lie


def scaled(factor: float) -> Callable[[Arrays], Arrays]:
    """Return the change of arrays that multiplies them."""
    return lambda update: {n: a * a.dtype.type(factor) if a.dtype.kind == "f" else a for n, a in update.items()}


def filled(value: float) -> Callable[[Arrays], Arrays]:
    """Return the change of arrays that replaces each number."""
    return lambda update: {n: np.full_like(a, value) if a.dtype.kind == "f" else a for n, a in update.items()}


def measured(metrics: dict[str, float], weights: dict[str, float]) -> Lie:
    """Return the lie with further or other metrics."""

    def lie(message: Message) -> Message:
        reply = decode(EvaluateReply, message.content)
        false_report = replace(reply, metrics={**reply.metrics, **metrics}, weights={**reply.weights, **weights})
        return _changed(message, encode(false_report))

    return lie


def enrolled(**changes: Any) -> Lie:
    """Return the lie with other fields of the reply to the invitation, until it is refused."""

    def lie(message: Message) -> Message:
        if message.has_error():
            return message
        return _changed(message, encode(replace(decode(EnrolReply, message.content), **changes)))

    return lie


def oversized(message: Message) -> Message:
    """Return a reply of 1 GB; the zeros take memory only if the server reads them."""
    return _changed(message, RecordDict({**message.content, "more": ConfigRecord({"blob": bytes(GIGABYTE)})}))


def failed(reason: str) -> Lie:
    """Return the lie that reports a failure instead of a training."""

    def lie(message: Message) -> Message:
        message.__dict__["_content"], message.__dict__["_error"] = None, Error(1000, reason)
        return message

    return lie


def false_metric(metric: str) -> tuple[str, Lie]:
    """Return the lie about a metric and its weight."""
    return EVALUATE, measured({metric: 1e200}, {metric: 1e100})


def one_step(steps: int) -> tuple[str, Lie]:
    """Return the lie of one local step with the update of 60, where honest clients make so many."""
    return TRAIN, trained(steps=1, update=scaled(60 / steps))


ESCAPES = "\x1b]0;owned\x07\x1b[2J=cmd\r\n"

HARMFUL: dict[str, tuple[str, Lie]] = {
    "3.3e38": (TRAIN, trained(update=filled(3.3e38))),
    "1e30": (TRAIN, trained(update=filled(1e30), gradient=filled(1e30))),
    "100 x norm": (TRAIN, trained(update=scaled(100), gradient=scaled(100))),
    "one step": one_step(12),
    "examples": (TRAIN, trained(examples=2**63 - 1)),
}
"""Lies about the update."""

REPORTED: dict[str, tuple[str, Lie]] = {
    "loss": (TRAIN, trained(loss=1.7e308)),
    "metric": false_metric("hr20"),
    "invented": (EVALUATE, measured({"accuracy": 1.0}, {"accuracy": 1.0})),
    "escapes in names": (ENROL, enrolled(client=ESCAPES)),
    "oversized": (TRAIN, oversized),
    "silence": (TRAIN, lambda message: None),
    "another's name": (ENROL, enrolled(client="client-0")),
    "escapes in metrics": (EVALUATE, measured({ESCAPES: 1.0}, {})),
    "escapes in reasons": (TRAIN, failed(ESCAPES)),
}
"""Other lies."""


def lies(metric: str, steps: int) -> dict[str, tuple[str, Lie]]:
    """Return name -> type of the message and lie, for clients with this metric and number of steps."""
    return {**HARMFUL, **REPORTED, "metric": false_metric(metric), "one step": one_step(steps)}
