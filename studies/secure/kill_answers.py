"""Answers of clients and helpers that left their processes."""

import hashlib
from collections import defaultdict
from dataclasses import dataclass, field

from flwr.app import Message

from common.secure.terms import SumTerms, digest
from common.wire.codec import decode
from common.wire.messages import OPEN, PREPARE, TRAIN, OpenReply, OpenRequest, PrepareRequest, TrainReply

Place = tuple[str, int, str]
"""Helper, round and channel."""


@dataclass
class Answers:
    """Opened sums by helper, round and channel, and uploads by client and round."""

    opened: dict[Place, set[tuple[str, str]]] = field(default_factory=lambda: defaultdict(set))
    """Place -> digest of the set, and digest of the numbers, of each answer."""
    uploads: dict[tuple[str, int], set[str]] = field(default_factory=lambda: defaultdict(set))
    """Client and round -> digests of what it sent."""
    _boxes: dict[Place, dict[str, str]] = field(default_factory=dict)

    def record(self, name: str, request: Message, reply: Message) -> None:
        """Add the answer of a node."""
        kind = request.metadata.message_type
        if reply.has_error():
            return
        if kind == PREPARE:
            asked = decode(PrepareRequest, request.content)
            boxes = dict(zip(asked.clients, asked.sealed, strict=True))
            self._boxes[_place(name, SumTerms.from_json(asked.terms))] = boxes
        elif kind == OPEN and not (answer := decode(OpenReply, reply.content)).missing:
            self._record_sum(name, decode(OpenRequest, request.content), answer)
        elif kind == TRAIN and (sent := decode(TrainReply, reply.content)).masked:
            content = sent.masked["sum"].tobytes() + "".join(sent.sealed).encode()
            self.uploads[name, sent.round].add(hashlib.sha256(content).hexdigest())

    def _record_sum(self, name: str, asked: OpenRequest, answer: OpenReply) -> None:
        terms = SumTerms.from_json(asked.terms)
        place = _place(name, terms)
        members = digest([terms.digest, [[client, self._boxes[place][client]] for client in asked.clients]])
        self.opened[place].add((members, hashlib.sha256(answer.opened["sum"].tobytes()).hexdigest()))


def _place(name: str, terms: SumTerms) -> Place:
    return name, terms.round, terms.channel
