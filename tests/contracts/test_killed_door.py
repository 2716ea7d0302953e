"""Door that is killed between any two frames: the run ends in the bits of an unbroken one, and no release is made twice."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import grpc
import pytest
from flwr.app import ConfigRecord, Context, Error, Message, RecordDict

from client.app import respond
from client.node.failures import Server
from common.config.run import RunConfig
from common.door import frames as chunks
from common.door.door_pb2 import ClientFrame
from common.options import Scalar
from common.tasks.networks import NETWORKS
from deploy.superlink import door
from deploy.superlink.door_thread import Address
from deploy.superlink.superlink import free_port
from server.exchange.flower import decode_record
from server.record.result import Result
from server.run import run
from tests.support.doors import DoorHome, FakeNode, open_door
from tests.support.hubs import NodeGrid
from tests.support.owners import noisy, owners
from tests.support.residents import RunningResident, app_of, wait_until
from tests.support.sensors import rounds_of
from tools.pages import ROOT

ROUNDS, CHUNK_BYTES = 2, 1_500
FRAMES = range(22, 32)
"""Numbers of the second round's frames: task, two chunks, received, reply, go, chunk, received; and those beside them."""
ALL_FRAMES = 37


class KilledError(BaseException):
    """End of the server's processes; no handler of errors sees it."""


class Frames:
    """Frames between the door and its client so far; before that of number `last`, the door's process ends."""

    def __init__(self, last: int = 0) -> None:
        self.last, self.count, self.over = last, 0, False

    async def step(self, *, counts: bool = True) -> None:
        self.count += counts
        self.over = self.over or self.count == self.last
        if self.over:
            raise grpc.RpcError


class Counted:
    """Context of a call, whose frames are counted; heartbeats come at any time, and are not."""

    def __init__(self, context: Any, frames: Frames) -> None:
        self._context, self._frames = context, frames
        self.peer, self.auth_context = context.peer, context.auth_context

    async def read(self) -> Any:
        content = await self._context.read()
        is_frame = isinstance(content, bytes) and ClientFrame.FromString(content).WhichOneof("frame") != "heartbeat"
        await self._frames.step(counts=is_frame)
        return content

    async def write(self, content: bytes) -> None:
        await self._frames.step()
        await self._context.write(content)


@contextmanager
def server(port: int, frames: Frames) -> Iterator[NodeGrid]:
    """Yield the nodes of a server: one client, behind a door whose frames are counted."""
    serve = door.Door._serve

    def counted(self: door.Door, context: Any) -> Any:
        return serve(self, Counted(context, frames))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "CHUNK_BYTES", CHUNK_BYTES)
        patch.setattr(door.Door, "_serve", counted)
        with open_door(Address(f"localhost:{port}")) as node:
            yield NodeGrid({7: lambda message: ask(node, frames, message)})


def ask(node: FakeNode, frames: Frames, message: Message) -> Message:
    """Return the answer of the client to a message through the door."""
    [task] = node.post(message.content, message.metadata.message_type)
    wait_until(lambda: frames.over or any(answer.task == task for answer in node.answers), 20.0)
    if frames.over:
        raise KilledError
    [answer] = [answer for answer in node.answers if answer.task == task]
    if answer.code:
        return Message(Error(answer.code, answer.reason), reply_to=message)
    return Message(decode_record(answer.content), reply_to=message)


def settings(folder: Path, **options: Scalar) -> RunConfig:
    return noisy(folder, "fedavg", rounds=ROUNDS, **{"privacy.accept-noise": True, **options})


def train(folder: Path, last: int = 0, **options: Scalar) -> tuple[Result, int, Frames]:
    """Run with noise, whose server is killed before a frame and goes on; return the result, and the number of releases."""
    people, config, port = owners(1), settings(folder, **options), free_port()
    frames = Frames(last)
    client = RunningResident(lambda message, context: respond(people.sessions[1], message), Server(f"localhost:{port}"))
    try:
        try:
            with server(port, frames) as grid:
                result = run(grid, config, folder)
        except KilledError:
            resumed = config.model_copy(update={"resume": True})
            with server(port, Frames()) as grid:
                result = run(grid, resumed, folder)
        assert client.error is None
    finally:
        client.leave()
    return result, people.sessions[1].releaser.budget.ledger(config.privacy).head().sequence, frames


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, int]:
    result, releases, frames = train(tmp_path_factory.mktemp("unbroken"))
    assert frames.count == ALL_FRAMES
    return result.model_sha256, releases


@pytest.mark.parametrize("last", FRAMES)
def test_a_run_whose_door_is_killed_between_two_frames_ends_in_the_same_bits(
    last: int, unbroken: tuple[str, int], tmp_path: Path
) -> None:
    result, releases, frames = train(tmp_path, last)
    assert frames.over, "it was killed"
    assert (result.model_sha256, releases) == unbroken
    assert [event.round for event in rounds_of(tmp_path)] == [*range(1, ROUNDS + 1)]
    assert releases == ROUNDS


def test_a_network_of_a_package_trains_over_the_door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "sage-network"))
    monkeypatch.setattr(NETWORKS, "_added", set())
    NETWORKS.add(import_module("sage_network").NETWORK)
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    result, releases, _ = train(there, model="sage")
    assert (result.model, releases) == ("sage", ROUNDS)
    assert result.model_sha256 == owners(1).run(settings(here, model="sage"), here).model_sha256


@pytest.mark.parametrize("megabytes", [0, 3])
def test_a_reply_that_a_broken_connection_cut_arrives_once(home: DoorHome, megabytes: int) -> None:
    """The client is cut off while it trains, and again after it has sent the reply: it neither trains nor counts twice."""
    trained, key = list[int](), home.make_key(f"cut-{megabytes}")

    def train(message: Message, context: Context) -> Message:
        trained.append(1)
        door.revoked = {7}  # cuts the stream
        wait_until(lambda: ("leave", 7) in door.events)
        door.revoked = set()
        return Message(RecordDict({"a": ConfigRecord({"b": bytes(megabytes * 10**6)})}), reply_to=message)

    with open_door(home.at) as door:
        [task] = door.post(RecordDict())
        client = RunningResident(app_of(train), Server(door.address, home.ca, key))
        wait_until(lambda: len(door.answers) == 1)
        assert client.leave() < 2
        assert client.error is None
    assert (trained, [answer.task for answer in door.answers]) == ([1], [task])
