"""Grid whose messages go to clients through the door: together, in one call."""

import time
import uuid
from collections.abc import Iterable, Iterator, Sequence

from flwr.app import Error, Message
from flwr.serverapp import Grid

from common.door.door_pb2 import Answer, Order
from common.door.frames import ELSEWHERE
from common.errors import WireError
from common.wire.messages import FAILED
from server.exchange.flower import Ask, Pull, decode_record, door_call, encode_record, prompt_pull
from server.exchange.grid import WrappedGrid, is_beside, reply_limit


def connect(grid: Grid, seconds: float) -> Grid:
    """Return a Grid through the door, or in one process the Grid itself; replies have `seconds` to arrive."""
    ask = door_call(grid)
    return grid if ask is None else DoorGrid(grid, prompt_pull(grid, seconds), ask, seconds)


class DoorGrid(WrappedGrid):
    """Wrapper of a Grid: messages to all clients that the door lets in are one call.

    The door waits a moment for answers. Without a door, messages pass unchanged.
    A client's reply must arrive at the door within `upload` seconds of its beginning.
    """

    def __init__(self, grid: Grid, pull: Pull, ask: Ask, upload: float = 0.0) -> None:
        super().__init__(grid)
        self._pull, self._ask, self._upload = pull, ask, upload
        self._asked: dict[str, Message] = {}
        """Id of a message to a client -> the message, until its answer has come."""
        self._direct: dict[str, Message] = {}
        """Id of Flower's message to a node of its own -> the message that it stands for."""

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Push the messages of an exchange by one call; a content that several share is in it once.

        Exchanges before it are over, also for the door, unless all messages are beside them.
        """
        messages = list(messages)
        is_apart = all(map(is_beside, messages))
        asked, direct = self._asked, self._direct
        self._asked = {one: message for one, message in asked.items() if is_apart or is_beside(message)}
        self._direct = {one: message for one, message in direct.items() if is_apart or is_beside(message)}
        for message in messages:
            message.metadata.__dict__["_message_id"] = uuid.uuid4().hex
        order = _order_of(messages)
        order.upload, order.awaited[:] = self._upload, self._asked
        if messages and self._ask(order) is None:
            return [*self._grid.push_messages(messages)]
        self._asked |= {_id(message): message for message in messages}
        return [_id(message) for message in messages]

    def pull_messages(self, message_ids: Iterable[str]) -> Iterator[Message]:
        """Pull the answers that the door has within a moment, and those of Flower's own nodes."""
        wanted, direct = {*message_ids}, {_id(asked) for asked in self._direct.values()}
        yield from self._pull_direct(wanted - self._asked.keys(), direct & wanted)
        owed = sorted((wanted & self._asked.keys()) - direct)
        beside = [identity for identity in owed if is_beside(self._asked[identity])]
        answers = self._ask(Order(awaited=sorted({*owed} - {*beside}), beside=beside)) if owed else None
        for answer in answers.answers if answers else ():
            if (asked := self._asked.get(answer.task)) is None:
                continue
            if answer.code == ELSEWHERE:
                self._push_direct(asked)
                continue
            del self._asked[answer.task]
            yield _reply(answer, asked)

    def _push_direct(self, asked: Message) -> None:
        about = asked.metadata
        message = Message(asked.content, about.dst_node_id, about.message_type, ttl=about.ttl, group_id=about.group_id)
        if [*self._grid.push_messages([message])] == [_id(message)]:
            self._direct[_id(message)] = asked

    def _pull_direct(self, plain: set[str], wanted: set[str]) -> Iterator[Message]:
        """Pull the replies to messages that passed unchanged, and those in place of which others were sent."""
        sent = {identity for identity, asked in self._direct.items() if _id(asked) in wanted} | plain
        for reply in self._pull(sent) if sent else ():
            if asked := self._direct.pop(reply.metadata.reply_to_message_id, None):
                self._asked.pop(_id(asked), None)
                reply.metadata.__dict__["_reply_to_message_id"] = _id(asked)
            yield reply


def _order_of(messages: Sequence[Message]) -> Order:
    contents: dict[int, int] = {}
    order = Order()
    for message in messages:
        about, shared = message.metadata, id(message.content)
        if shared not in contents:
            contents[shared] = len(order.contents)
            order.contents.append(encode_record(message.content))
        order.tasks.add(
            id=about.message_id,
            node=about.dst_node_id,
            content=contents[shared],
            kind=about.message_type,
            group=about.group_id,
            created=time.time(),
            ttl=about.ttl,
            most=reply_limit(message),
        )
    return order


def _reply(answer: Answer, asked: Message) -> Message:
    """Return the reply of a client; one with content that cannot be read is an error of its own."""
    if answer.code or answer.reason:
        return Message(Error(answer.code, answer.reason), reply_to=asked)
    try:
        return Message(decode_record(answer.content), reply_to=asked)
    except Exception as error:  # clients may send any bytes
        malformed = WireError(f"malformed: {type(error).__name__}")
        return Message(Error(FAILED, str(malformed)), reply_to=asked)


def _id(message: Message) -> str:
    return str(message.metadata.message_id)
