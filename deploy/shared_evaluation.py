"""Evaluation of many simulated clients in several processes."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from flwr.app import Error, Message
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
from flwr.proto.recorddict_pb2 import RecordDict as EncodedRecord

from client.app import answer, decode_request
from client.session import Session
from client.state import MemoryStore
from common.wire.codec import decode
from common.wire.messages import EVALUATE, EvaluateRequest
from deploy.copies import can_copy, run_in_copies
from deploy.simulated_cohort import decode_once

FEWEST = 1000
"""Smallest number of clients whose evaluation is shared out; for fewer, copies cost more time."""


def are_shared_out(sessions: Mapping[int, Session], messages: Sequence[Message]) -> bool:
    """Return True if several processes answer these messages.

    They are evaluations of many clients, which store documents, but no state of the method.
    """
    if len(messages) < FEWEST or not can_copy() or messages[0].metadata.message_type != EVALUATE:
        return False
    first = sessions[messages[0].metadata.dst_node_id]
    enrolment = decode(EvaluateRequest, messages[0].content).enrolment
    return first.config(enrolment).capabilities.own_model != "adapted"


def evaluate_apart(sessions: Mapping[int, Session], messages: Sequence[Message], workers: int) -> list[Message]:
    """Return the clients' answers, and store the documents that they wrote.

    Raises:
        RunError: A process has ended before its clients had answered.
    """
    run = decode(EvaluateRequest, messages[0].content).enrolment.partition(":")[0]
    shares = [messages[first::workers] for first in range(workers)]
    works = [partial(_evaluate, sessions, share, run) for share in shares]
    names = [f"worker {k + 1} of {workers}, with {len(share)} evaluations" for k, share in enumerate(shares)]
    replies: dict[str, Message] = {}
    for share, parts in zip(shares, run_in_copies(works, names), strict=True):
        for message, content, documents in zip(share, parts[::2], parts[1::2], strict=True):
            replies[message.metadata.message_id] = _read(message, content)
            for name, text in json.loads(documents).items():
                sessions[message.metadata.dst_node_id].store.write(run, name, text.encode("latin-1"))
    return [replies[message.metadata.message_id] for message in messages]


def _evaluate(sessions: Mapping[int, Session], messages: Sequence[Message], run: str) -> Iterator[bytes]:
    request = decode_once(decode_request)
    for message in messages:
        session = sessions[message.metadata.dst_node_id]
        before = _documents(session, run)
        reply = answer(session, message, partial(request, message))
        if reply.has_error():
            yield b"e" + json.dumps([reply.error.code, reply.error.reason]).encode()
        else:
            yield b"c" + recorddict_to_proto(reply.content).SerializeToString()
        after = _documents(session, run)
        yield json.dumps({n: text.decode("latin-1") for n, text in after.items() if text is not before.get(n)}).encode()


def _documents(session: Session, run: str) -> dict[str, bytes]:
    return session.store.documents(run) if isinstance(session.store, MemoryStore) else {}


def _read(message: Message, content: bytes) -> Message:
    if content[:1] == b"e":
        return Message(Error(*json.loads(content[1:])), reply_to=message)
    return Message(recorddict_from_proto(EncodedRecord.FromString(content[1:])), reply_to=message)
