"""Mutations of frames at both ends of a door's stream: a typed error ends a stream, and nothing else does."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from itertools import islice
from random import Random
from typing import Any

import grpc
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.app import ConfigRecord, RecordDict

from client.node.failures import Server
from client.node.stream import NodeStream
from common.door.door_pb2 import (
    Chunk,
    ClientFrame,
    Go,
    Heartbeat,
    Hello,
    Notice,
    Received,
    Reply,
    ServerFrame,
    Task,
    Welcome,
)
from common.door.frames import CHUNK_BYTES, PROTOCOL, Rate
from common.door.identity import CURVE
from common.errors import FedloomError, WireError
from common.node_names import to_pem
from deploy.superlink.admission import NoticeError
from deploy.superlink.door import OpenTask, _parse
from server.exchange.flower import encode_record
from studies.faults.attacks import mutate
from tests.support.doors import FakeNode, open_door
from tests.support.residents import wait_until

MUTATIONS, STREAMS = 20_000, 500
ASKED = "a" * 32
KEY = to_pem(ec.derive_private_key(7, CURVE).public_key())
HELLO = ClientFrame(hello=Hello(protocol=PROTOCOL, version="1", key=KEY))
SECONDS = 60.0
CONTENT = encode_record(RecordDict({"a": ConfigRecord({"b": bytes(99), "c": [1.5, 2.5], "d": "text"})}))


class Wire:
    """Context of a call at the door: frames of a client, and those to it. A client that stays sends no more after them."""

    def __init__(self, frames: Sequence[bytes], *, stays: bool = False) -> None:
        self.frames, self.stays, self.written = [*frames], stays, list[ServerFrame]()

    async def read(self) -> Any:
        if self.stays and not self.frames:
            await asyncio.Event().wait()
        return self.frames.pop(0) if self.frames else grpc.aio.EOF

    async def write(self, content: bytes) -> None:
        self.written.append(ServerFrame.FromString(content))

    def auth_context(self) -> dict[str, Any]:
        return {}

    def peer(self) -> str:
        return "ipv4:192.0.2.7:1"


def mutations(good: Sequence[ClientFrame] | Sequence[ServerFrame]) -> Iterator[bytes]:
    """Yield mutated frames without end."""
    random, texts = Random(0), [frame.SerializeToString() for frame in good]
    while True:
        yield mutate(random.choice(texts), random)


@pytest.fixture
def node() -> Iterator[FakeNode]:
    with open_door(frames=1e9, burst=10**9, barred=0.0) as node:
        yield node


def play(node: FakeNode, attack: Callable[[Any, OpenTask, Iterator[bytes]], Coroutine[Any, Any, None]]) -> None:
    """Attack a door in its own loop with mutations of answers to an open task."""
    assert node.door is not None
    door: Any = node.door.door
    [asked] = node.post(RecordDict())
    wait_until(lambda: asked in door._tasks)
    reply = Reply(task=asked, code=1, reason="why", size=len(CONTENT), data=CONTENT)
    large = Reply(task=asked, size=CHUNK_BYTES + 3, data=bytes(CHUNK_BYTES))
    good = [ClientFrame(reply=reply), ClientFrame(reply=large), ClientFrame(received=Received(task=asked))]
    good += [HELLO, ClientFrame(heartbeat=Heartbeat()), ClientFrame(chunk=Chunk(data=b"123"))]
    attacked = attack(door, door._tasks[asked], mutations(good))
    asyncio.run_coroutine_threadsafe(attacked, node.door.loop).result(SECONDS)


def test_mutated_frames_raise_typed_errors_alone_at_the_door(node: FakeNode) -> None:
    ends, answers = Counter[str](), 0

    async def attack(door: Any, task: OpenTask, garbage: Iterator[bytes]) -> None:
        nonlocal answers
        wire = Wire([HELLO.SerializeToString()], stays=True)
        call = asyncio.ensure_future(door.serve(wire, wire))
        while not (stream := door._streams.get(7)):
            await asyncio.sleep(0.01)
        for content in islice(garbage, MUTATIONS):
            try:
                door._handle(stream, _parse(content))
            except (NoticeError, WireError) as error:
                ends[type(error).__name__] += 1
                stream.reply = stream.body = None
            if task.answer:
                answers += 1
                task.answer = None
        call.cancel()

    play(node, attack)
    assert ends.keys() == {"NoticeError", "WireError"}
    assert min(*ends.values(), answers) > MUTATIONS // 100


def test_streams_of_mutated_frames_end_with_a_reason(node: FakeNode) -> None:
    kinds = set[int]()

    async def attack(door: Any, task: OpenTask, garbage: Iterator[bytes]) -> None:
        for number in range(STREAMS):
            wire = Wire([*[HELLO.SerializeToString()] * (number % 8 > 0), *islice(garbage, 10)])
            await door.serve(wire, wire)
            notices = [one.notice for one in wire.written if one.WhichOneof("frame") == "notice"]
            ends = {one.kind for one in notices if not one.task}
            assert ends or not wire.frames, "a stream that ends before its frames has a reason"
            kinds.update(ends)

    play(node, attack)
    assert Notice.MALFORMED in kinds
    assert Notice.UNSPECIFIED not in kinds


def test_mutated_frames_raise_typed_errors_alone_at_a_client() -> None:
    task = Task(id=ASKED, run=1, kind="train", group="1", created=2e9, ttl=100.0, size=len(CONTENT), data=CONTENT)
    notice = Notice(kind=Notice.TOO_MANY, task=ASKED, text="text")
    good = [ServerFrame(task=task), ServerFrame(welcome=Welcome(node=7)), ServerFrame(go=Go(task=ASKED))]
    good += [ServerFrame(chunk=Chunk(data=b"123")), ServerFrame(received=Received(task=ASKED))]
    good.append(ServerFrame(notice=notice))
    garbage, found = Call(islice(mutations(good), MUTATIONS)), Counter[str]()
    stream: Any = NodeStream(Server("localhost:1"), threading.Event())
    stream._call = garbage
    while garbage.is_there():
        stream._error, stream._rate = None, Rate(1e9, 1e9)
        stream._waiting.clear()
        stream._read()
        assert isinstance(stream._error, FedloomError)
        found.update(type(stream._inbox.get()).__name__ for _ in range(stream._inbox.qsize()))
    assert found.keys() == {"Message", "WireError"}
    assert min(found.values()) > MUTATIONS // 100


class Call:
    """Call of a client whose server sends these frames, again and again from where it was left."""

    def __init__(self, frames: Iterator[bytes]) -> None:
        self.frames, self.left = frames, MUTATIONS

    def __iter__(self) -> Iterator[bytes]:
        for one in self.frames:
            self.left -= 1
            yield one

    def is_there(self) -> bool:
        return self.left > 0

    def cancel(self) -> None:
        """Leave the rest for the next reader."""
