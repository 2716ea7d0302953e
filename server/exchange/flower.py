"""Door to Flower's internals on the server: retrieval of replies, records as bytes, identity.

The content of a reply reaches the SuperLink milliseconds after it is announced. Flower's HttpGrid waits for it, a full second
at first, and meanwhile for nobody else: a client that freezes between announcement and content stops the round. It also raises
on content of a wrong type, which discards the replies of all other clients. This module therefore pulls replies itself, by the
connection of HttpGrid. A contract test pins the internals of Flower that it uses.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, cast

from flwr.app import Error, Message, Metadata, RecordDict
from flwr.app.message import make_message
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
from flwr.proto.message_pb2 import ConfirmMessageReceivedRequest, PullObjectRequest
from flwr.proto.node_pb2 import NodeInfo
from flwr.proto.recorddict_pb2 import RecordDict as EncodedRecord
from flwr.proto.runtime_pb2 import PullAppMessagesRequest
from flwr.serverapp import Grid
from flwr.supercore.inflatable.inflatable_object import iterate_object_tree
from flwr.supercore.inflatable.inflatable_utils import (
    ObjectPullError,
    ObjectUnavailableError,
    inflate_object_from_contents,
    pull_objects,
)
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

from common.door.door_pb2 import Answers, Order
from common.door.frames import ORDERS
from common.wire.codec import Handed, encode

if TYPE_CHECKING:
    from flwr.superlink.grid.http_grid import HttpGrid  # a simulation needs none of its 500 modules

log = logging.getLogger("fedloom.server")

MALFORMED_CODE, MISSING_CODE = 0, 3  # Flower's ErrorCode for what has no other, and for a lost message

Pull = Callable[[Iterable[str]], Iterable[Message]]
"""Function from ids of messages to those of their replies that have arrived."""

__all__ = [
    "Ask",
    "NodeInfo",
    "Pull",
    "Run",
    "Uploads",
    "decode_record",
    "door_call",
    "encode_record",
    "identify_process",
    "prompt_pull",
]


def encode_record(content: RecordDict) -> bytes:
    """Return the bytes of a message's content, for another process of this machine."""
    record = encode(content.payload) if isinstance(content, Handed) else content
    encoded: bytes = recorddict_to_proto(record).SerializeToString()
    return encoded


def decode_record(content: bytes) -> RecordDict:
    """Return the content of `encode_record`."""
    return recorddict_from_proto(EncodedRecord.FromString(content))


Ask = Callable[[Order], Answers | None]
"""Function from an order to the answers of the door; None if there is no door."""


def door_call(grid: Grid) -> Ask | None:
    """Return the call of the door in the SuperLink's process; None for a Grid in this process."""
    return partial(_call_door, cast("HttpGrid", grid)) if hasattr(type(grid), "_runtime_client") else None


def _call_door(grid: "HttpGrid", order: Order) -> Answers | None:
    from httpx import HTTPStatusError, codes  # a simulation needs neither

    try:
        return grid._runtime_client._unary_unary(path=ORDERS, rpc_method=ORDERS, request=order, response_type=Answers)
    except HTTPStatusError as error:
        if error.response.status_code != codes.NOT_FOUND:
            raise
        return None


def identify_process() -> None:
    """Give this process the identity that messages need, where no SuperLink gives it one."""
    TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1


def prompt_pull(grid: Grid, seconds: float) -> Pull:
    """Return the function that pulls replies of a Grid; one waits for its content for so many seconds."""
    return grid.pull_messages if door_call(grid) is None else Uploads(cast("HttpGrid", grid), seconds).pull


@dataclass
class _Announced:
    """Announced reply.

    Args:
        root: Id of the reply's message.
        objects: Ids of all its objects, of which the root is one.
        end: Time at which it is given up.
    """

    root: str
    objects: list[str]
    end: float
    contents: dict[str, bytes] = field(default_factory=dict)
    is_gone: bool = False


class Uploads:
    """Announced replies, and the part of their content that has arrived.

    Args:
        grid: Grid with the connection to the SuperLink.
        seconds: Time from the announcement in which the content must arrive.
        clock: Monotonic seconds.
    """

    def __init__(self, grid: "HttpGrid", seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._grid, self._seconds, self._clock = grid, seconds, clock
        self._announced: dict[str, _Announced] = {}

    def pull(self, message_ids: Iterable[str]) -> Iterator[Message]:
        """Yield the complete replies to these messages, with the content of one in memory at a time.

        Missing content becomes an error reply, like any other failure of a client. Malformed content becomes an error without
        a recipient, since the unreadable part names the sender; the client then counts as missing.
        """
        wanted = {*message_ids}
        now = self._clock()  # other exchanges may await some, too
        self._announced = {one: reply for one, reply in self._announced.items() if one in wanted or now < reply.end}
        self._announced |= self._hear(wanted - self._announced.keys())
        for identity in [one for one in self._announced if one in wanted]:
            reply = self._announced[identity]
            if self._fetch(reply):
                yield self._receive(self._announced.pop(identity))
            elif reply.is_gone or self._clock() >= reply.end:
                del self._announced[identity]
                yield _error_reply(MISSING_CODE, "its content did not arrive", identity)

    def _hear(self, message_ids: set[str]) -> dict[str, _Announced]:
        answer = self._grid._runtime_client.PullMessages(PullAppMessagesRequest(message_ids=message_ids))
        end, found = self._clock() + self._seconds, dict[str, _Announced]()
        for message, tree in zip(answer.messages_list, answer.message_object_trees, strict=True):
            objects = [part.object_id for part in iterate_object_tree(tree)]
            found[message.metadata.reply_to_message_id] = _Announced(message.metadata.message_id, objects, end)
        return found

    def _fetch(self, reply: _Announced) -> bool:
        """Fetch what has arrived; return True if that is all."""

        def fetch(identity: str) -> bytes:
            request = PullObjectRequest(node=self._grid.node, run_id=self._grid.run.run_id, object_id=identity)
            answer = self._grid._runtime_client.PullObject(request)
            if not answer.object_available:
                reply.is_gone = reply.is_gone or not answer.object_found
                raise ObjectUnavailableError(identity)
            reply.contents[identity] = answer.object_content
            return b""

        try:
            pull_objects([part for part in reply.objects if part not in reply.contents], fetch, max_tries_per_object=1)
        except ObjectPullError:
            return False
        return True

    def _receive(self, reply: _Announced) -> Message:
        self._grid._runtime_client.ConfirmMessageReceived(
            ConfirmMessageReceivedRequest(
                node=self._grid.node, run_id=self._grid.run.run_id, message_object_id=reply.root
            )
        )
        try:
            message = inflate_object_from_contents(reply.root, reply.contents)
        except Exception as error:  # clients may send any bytes
            return _malformed_reply(type(error).__name__)
        if not isinstance(message, Message):
            return _malformed_reply(f"a {type(message).__name__} instead of a message")
        message.metadata.__dict__["_message_id"] = reply.root
        return message


def _malformed_reply(reason: str) -> Message:
    log.warning("a malformed reply is left out: %s", reason)
    return _error_reply(MALFORMED_CODE, f"malformed: {reason}", "")


def _error_reply(code: int, reason: str, identity: str) -> Message:
    return make_message(Metadata(0, "", 0, 0, identity, "", 0.0, 0.0, "query"), error=Error(code, reason))
