"""Attacks on a door in this process: strangers, garbage, floods, messages that are too large, keys that are used twice."""

import logging
import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import grpc
import numpy as np
import psutil
import pytest
from flwr.app import ArrayRecord, Context, Message, RecordDict

from client.node.failures import Server
from common.door.door_pb2 import (
    Addressed,
    Answer,
    Chunk,
    ClientFrame,
    Heartbeat,
    Hello,
    Notice,
    Order,
    Received,
    Reply,
    ServerFrame,
)
from common.door.frames import CHUNK_BYTES, ELSEWHERE, PROTOCOL, SERVE, first_bytes, further_chunks
from common.door.identity import issuer_of, newcomers_of, node_certificate
from common.errors import ConnectError
from common.node_names import fingerprint
from deploy.keys.certificates import make_authority
from deploy.keys.nodes import make_node_key
from deploy.superlink import door as door_of_server
from deploy.superlink import strangers
from deploy.superlink.door import MISSING, SLOW
from studies.faults import attacks
from studies.faults.attacks import ATTACKS, STRANGERS, Target
from tests.support.doors import DoorHome, FakeNode, open_door
from tests.support.residents import RunningResident, app_of, resident_mb, wait_until

SECONDS = 5.0


@pytest.fixture
def door(home: DoorHome) -> Iterator[FakeNode]:
    with open_door(home.at, frames=10.0, burst=50, barred=1.0, join_burst=100, message_mb=1) as node:
        yield node


class Raw:
    """Stream of bytes to a door, as an attacker has it."""

    def __init__(self, door: FakeNode, home: DoorHome, key: Any, ca: bytes | None = None) -> None:
        pair = (node_certificate(ca, key) if ca else home.issued(key)) if key else (None, None)
        self.channel = grpc.secure_channel(door.address, grpc.ssl_channel_credentials(home.ca, *pair))
        self.frames: list[bytes] = []
        self.more, self.over = threading.Condition(), False
        self.call = self.channel.stream_stream(SERVE)(self._requests())

    def _requests(self) -> Iterator[bytes]:
        while True:
            with self.more:
                self.more.wait_for(lambda: self.frames or self.over)
                if not self.frames:
                    return
                frame = self.frames.pop(0)
            yield frame

    def send(self, *frames: ClientFrame | bytes) -> None:
        with self.more:
            self.frames += [one if isinstance(one, bytes) else one.SerializeToString() for one in frames]
            self.more.notify_all()

    def next(self) -> ServerFrame:
        return ServerFrame.FromString(next(self.call))

    def hello(self) -> int:
        self.send(HELLO)
        return self.next().welcome.node

    def notice(self) -> Notice:
        """Return the notice with which the door ends the stream."""
        for content in self.call:
            frame = ServerFrame.FromString(content)
            if frame.WhichOneof("frame") == "notice" and not frame.notice.task:
                return frame.notice
        raise AssertionError("the stream ended without a notice")

    def close(self) -> None:
        with self.more:
            self.over = True
            self.more.notify_all()
        self.channel.close()


HELLO = ClientFrame(hello=Hello(protocol=PROTOCOL, version="1"))
BEAT = ClientFrame(heartbeat=Heartbeat())


@pytest.fixture
def connect(door: FakeNode, home: DoorHome) -> Iterator[Callable[..., Raw]]:
    opened: list[Raw] = []

    def start(key: Any, ca: bytes | None = None) -> Raw:
        opened.append(Raw(door, home, key, ca))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_a_stranger_ends_in_the_handshake(
    door: FakeNode, home: DoorHome, connect: Callable[..., Raw], tmp_path: Path
) -> None:
    other = make_authority(tmp_path).ca.read_bytes()
    for key, ca in ((None, None), (home.make_key("stranger"), other)):
        with pytest.raises(grpc.RpcError) as failure:
            connect(key, ca).hello()
        assert failure.value.code() == grpc.StatusCode.UNAVAILABLE
    assert door.events == []


def test_the_authority_of_nodes_certifies_no_server(home: DoorHome, tmp_path: Path) -> None:
    """Whoever has an invitation can derive it, and clients trust the server's own CA alone."""
    assert len({newcomers_of(home.ca).pem, issuer_of(home.key).pem, home.ca}) == 3
    private, certificate = node_certificate(home.ca, home.make_key("liar"))
    (tmp_path / "key").write_bytes(private)
    (tmp_path / "pem").write_bytes(certificate)
    listening, context = socket.create_server(("127.0.0.1", 0)), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pem", tmp_path / "key")

    def greet() -> None:
        connection, _ = listening.accept()
        with pytest.raises(ssl.SSLError), context.wrap_socket(connection, server_side=True) as tls:
            tls.recv(1)

    thread = threading.Thread(target=greet, daemon=True)
    thread.start()
    trust = ssl.create_default_context(cadata=home.ca.decode())
    with (
        listening,
        socket.create_connection(listening.getsockname()) as client,
        pytest.raises(ssl.SSLCertVerificationError),
    ):
        trust.wrap_socket(client, server_hostname="localhost")
    thread.join(SECONDS)


def test_an_unregistered_key_is_refused_and_logged_once(
    door: FakeNode, home: DoorHome, connect: Callable[..., Raw], caplog: pytest.LogCaptureFixture
) -> None:
    door.registered, key = set(), home.make_key("unregistered")
    with caplog.at_level(logging.WARNING, "flwr"):
        for _ in range(5):
            raw = connect(key)
            raw.send(HELLO)
            assert raw.notice().kind == Notice.NOT_ADMITTED
    [line] = [record.getMessage() for record in caplog.records if "at the door, not admitted" in record.getMessage()]
    assert "127.0.0.1" in line or "::1" in line


def test_garbage_ends_a_stream_with_a_reason_and_the_door_goes_on(home: DoorHome) -> None:
    random, key = Random(0), home.make_key("garbage")
    good = [HELLO, BEAT, ClientFrame(received=Received(task="a")), ClientFrame(chunk=Chunk(data=b"1"))]
    good += [ClientFrame(reply=Reply(task="a", size=3, data=b"abc")), HELLO]
    with open_door(home.at, frames=10.0, burst=50, barred=0.0, join_burst=100) as door:
        for number in range(60):
            raw = Raw(door, home, key)
            if number % 2:
                raw.hello()
            for _ in range(10):
                content = bytearray(random.choice(good).SerializeToString() or b"\0")
                for _ in range(random.randint(0, 3)):
                    content[random.randrange(len(content))] = random.randrange(256)
                raw.send(bytes(content[: random.randint(0, len(content))]))
            raw.send(os.urandom(50))
            assert raw.notice().kind in {*Notice.Kind.values()} - {Notice.UNSPECIFIED}
            raw.close()
        raw = Raw(door, home, home.make_key("honest"))
        assert raw.hello()
        raw.close()


def test_a_key_that_sends_no_frames_is_barred_and_not_waited_for(
    door: FakeNode, home: DoorHome, connect: Callable[..., Raw]
) -> None:
    key = home.make_key("mutated")
    raw, again = connect(key), connect(key)
    node = raw.hello()
    [first] = door.post(RecordDict(), nodes=[node])
    assert raw.next().task.id == first
    raw.send(b"\xff")
    assert raw.notice().kind == Notice.MALFORMED
    wait_until(lambda: [(one.task, one.code) for one in door.answers] == [(first, MISSING)], 0.5)
    again.send(HELLO)
    assert again.notice().kind == Notice.TOO_MANY


def test_a_reply_beyond_the_limit_is_refused_before_its_body(
    door: FakeNode, home: DoorHome, connect: Callable[..., Raw]
) -> None:
    raw = connect(home.make_key("large"))
    node = raw.hello()
    [task] = door.post(RecordDict(), nodes=[node])
    assert raw.next().task.id == task
    raw.send(ClientFrame(reply=Reply(task=task, size=10**15, data=bytes(CHUNK_BYTES))))
    notice = raw.next().notice
    assert (notice.kind, notice.task) == (Notice.TOO_LARGE, task)
    wait_until(lambda: len(door.answers) == 1)
    assert door.answers[0].code == 1000
    raw.send(ClientFrame(chunk=Chunk(data=bytes(CHUNK_BYTES))))
    assert raw.notice().kind == Notice.MALFORMED


def test_a_reply_has_none_of_the_codes_of_the_door(door: FakeNode, home: DoorHome, connect: Callable[..., Raw]) -> None:
    raw = connect(home.make_key("code"))
    [task] = door.post(RecordDict(), nodes=[raw.hello()])
    raw.send(ClientFrame(reply=Reply(task=task, code=ELSEWHERE)))
    assert raw.notice().kind == Notice.MALFORMED
    wait_until(lambda: [answer.code for answer in door.answers] == [MISSING], 0.5)


def test_a_client_hears_why_while_a_frame_to_it_is_in_flight(
    door: FakeNode, home: DoorHome, connect: Callable[..., Raw]
) -> None:
    """A stream takes one write at a time: a notice beside another frame would leave the call open forever."""
    raw = connect(home.make_key("busy"))
    node = raw.hello()
    for _ in range(8):
        door.post(RecordDict({"large": ArrayRecord([np.zeros(CHUNK_BYTES)])}), nodes=[node])
    time.sleep(0.2)  # the client reads nothing, so the connection is full
    raw.send(ClientFrame(reply=Reply(task="none", code=ELSEWHERE)))
    time.sleep(0.2)
    assert raw.notice().kind == Notice.MALFORMED


def test_replies_beyond_the_limit_of_their_request_leave_memory_as_it_is_and_are_logged(
    home: DoorHome, connect: Callable[..., Raw], caplog: pytest.LogCaptureFixture
) -> None:
    """The door takes 256 MB, and the request has a reply of 1 MB at most."""
    with open_door(home.at, burst=10**4) as door:
        raw = Raw(door, home, home.make_key("beyond"))
        node, body = raw.hello(), bytes(CHUNK_BYTES)
        before = resident_mb()
        for size in (1_000_001, 10**8, 10**8, 255_999_999) * 10:
            [task] = door.post(RecordDict(), nodes=[node], most=10**6)
            assert raw.next().task.id == task
            raw.send(ClientFrame(reply=Reply(task=task, size=size, data=body)))
            notice = raw.next().notice
            assert (notice.kind, notice.task) == (Notice.TOO_LARGE, task)
            assert notice.text == f"a reply of {size:,} bytes, at most 1,000,000 are taken for this request"
        assert resident_mb() - before < 20
        [line] = [one.getMessage() for one in caplog.records if "at the door, too large" in one.getMessage()]
        assert "key SHA256:" in line
        [task] = door.post(RecordDict(), nodes=[node], most=10**6)
        assert raw.next().task.id == task
        raw.send(ClientFrame(reply=Reply(task=task, size=10**6, data=body)))
        assert raw.next().go.task == task
        raw.close()


def test_a_frame_beyond_the_limit_is_refused_unread(
    door: FakeNode, home: DoorHome, connect: Callable[..., Raw]
) -> None:
    raw = connect(home.make_key("frame"))
    raw.hello()
    raw.send(bytes(2**20))
    with pytest.raises(grpc.RpcError) as failure:
        raw.next()
    assert failure.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_compressed_frame_is_refused_unread(door: FakeNode, home: DoorHome) -> None:
    pair = home.issued(home.make_key("bomb"))
    credentials = grpc.ssl_channel_credentials(home.ca, *pair)
    with grpc.secure_channel(door.address, credentials, compression=grpc.Compression.Gzip) as channel:
        with pytest.raises(grpc.RpcError) as failure:
            next(channel.stream_stream(SERVE)(iter([bytes(200_000)])))
        assert failure.value.code() == grpc.StatusCode.UNIMPLEMENTED


STRANGERS_MB = 24.0
"""Memory that one volley may cost, whose attacker is in this process too; a message and a bomb are 250 and 64 MB."""


@pytest.mark.parametrize("kind", STRANGERS)
def test_strangers_cost_an_honest_client_nothing_and_are_logged_by_address(
    kind: str, home: DoorHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A line names them also right after one about another connection without a call, as probes are."""
    for module, name, value in (
        (strangers, "GRACE_SECONDS", 0.1),
        (strangers, "LOOK_SECONDS", 0.1),
        (attacks, "CONNECTIONS", 300),
        (attacks, "BOMB_BYTES", 2**26),
    ):
        monkeypatch.setattr(module, name, value)
    make_node_key(key := tmp_path / "stranger.key")

    def is_named(host: str) -> bool:
        lines = [one.getMessage() for one in caplog.records if "refused: at the door" in one.getMessage()]
        return any(f"{host}:" in line for line in lines)

    with caplog.at_level(logging.WARNING, "flwr"), open_door(home.at, hello=1.0) as door:
        port = int(door.address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)):
            wait_until(lambda: is_named("127.0.0.1"))
        honest = Raw(door, home, home.make_key("honest"))
        node, before = honest.hello(), psutil.Process().memory_info().rss
        volleys = ATTACKS[kind](Target(port, home.folder / "ca.pem", key))
        next(volleys)
        [task] = door.post(RecordDict(), nodes=[node])
        assert honest.next().task.id == task
        honest.send(ClientFrame(reply=Reply(task=task)))
        assert honest.next().received.task == task
        assert (psutil.Process().memory_info().rss - before) / 1e6 < STRANGERS_MB
        wait_until(lambda: is_named(attacks.STRANGER) or next(volleys) or False)
        volleys.close()
        honest.close()


def test_a_revoked_key_loses_its_stream_at_once_and_gets_no_other(
    door: FakeNode, home: DoorHome, connect: Callable[..., Raw]
) -> None:
    key = home.make_key("stolen")
    thief = connect(key)
    door.revoked, door.registered = {thief.hello()}, set()
    began = time.monotonic()
    assert thief.notice().kind == Notice.NOT_ADMITTED
    assert time.monotonic() - began < 1.0
    again = connect(key)
    again.send(HELLO)
    assert again.notice().kind == Notice.NOT_ADMITTED


def test_a_key_that_floods_is_barred_for_a_time(door: FakeNode, home: DoorHome, connect: Callable[..., Raw]) -> None:
    key = home.make_key("flood")
    raw, honest = connect(key), connect(home.make_key("calm"))
    raw.hello()
    honest.hello()
    raw.send(*[BEAT] * 200)
    assert raw.notice().kind == Notice.TOO_MANY
    again = connect(key)
    again.send(HELLO)
    assert again.notice().kind == Notice.TOO_MANY
    wait_until(lambda: door.events[2:] == [("leave", 7)], 2.0)  # else a round would wait for it
    honest.send(BEAT)
    time.sleep(1.1)
    assert connect(key).hello()


def test_a_key_opens_few_streams(home: DoorHome, caplog: pytest.LogCaptureFixture) -> None:
    key = home.make_key("joins")
    with caplog.at_level(logging.WARNING, "flwr"), open_door(home.at, join_burst=3, joins=1.0, barred=0.5) as door:
        found = list[bool]()
        while len(found) < 30 and not (found and found[-1]):  # a slow machine opens more than the burst
            raw = Raw(door, home, key)
            raw.send(HELLO)
            frame = raw.next()
            found.append(frame.WhichOneof("frame") == "notice")
            raw.close()
        assert len(found) > 3
        assert frame.notice.kind == Notice.TOO_MANY
        wait_until(lambda: [event for event, _ in door.events][-1] == "leave")  # else a round would wait for it
        door.post(RecordDict())
        wait_until(lambda: [answer.code for answer in door.answers] == [MISSING], 0.4)
        time.sleep(1.1)
        assert Raw(door, home, key).hello()
    [line] = [one.getMessage() for one in caplog.records if "too many" in one.getMessage()]
    assert fingerprint(key.public_key()) in line
    assert "never retrieved" not in caplog.text


def test_a_key_sends_no_faster_than_its_flow_and_others_do(home: DoorHome) -> None:
    with open_door(home.at, message_mb=1, flow_mb=1) as door:
        large, small = (Raw(door, home, home.make_key(name)) for name in ("fast", "beside"))
        nodes = [large.hello(), small.hello()]
        start = time.monotonic()
        for size in (10**6, 10**6):
            send(door, large, nodes[0], size)
        send(door, small, nodes[1], 1000)
        assert time.monotonic() - start < 2.0
        wait_until(lambda: len(door.answers) == 3)
        assert time.monotonic() - start > 0.7
        large.close()
        small.close()


def send(door: FakeNode, raw: Raw, node: int, size: int) -> None:
    """Send a reply of some bytes to a new task."""
    [task] = door.post(RecordDict(), nodes=[node])
    while raw.next().task.id != task:
        pass
    raw.send(ClientFrame(reply=Reply(task=task, size=size, data=first_bytes(bytes(size)))))
    if size > CHUNK_BYTES:
        while raw.next().go.task != task:
            pass
        raw.send(*[ClientFrame(chunk=chunk) for chunk in further_chunks(bytes(size))])


def test_a_client_without_a_hello_or_a_body_is_cut_off(home: DoorHome, connect: Callable[..., Raw]) -> None:
    with open_door(home.at, hello=0.5, body=0.3, pace_kb=10**6) as door:
        silent = Raw(door, home, home.make_key("silent"))
        assert silent.notice().kind == Notice.LATE
        slow = Raw(door, home, home.make_key("slow"))
        node = slow.hello()
        [task] = door.post(RecordDict(), nodes=[node])
        assert slow.next().task.id == task
        slow.send(ClientFrame(reply=Reply(task=task, size=CHUNK_BYTES + 1, data=bytes(CHUNK_BYTES))))
        assert slow.next().go.task == task
        assert slow.notice().kind == Notice.LATE
        wait_until(lambda: [answer.code for answer in door.answers] == [3])
        silent.close()
        slow.close()


def test_a_reply_that_outlasts_its_round_holds_up_no_other_and_is_logged_with_its_key(
    home: DoorHome, connect: Callable[..., Raw], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(door_of_server, "SILENCE_SECONDS", 0.2)
    key = home.make_key("trickle")
    with open_door(home.at) as door:
        slow = Raw(door, home, key)
        node, body = slow.hello(), bytes(3 * CHUNK_BYTES)
        [task] = door.post(RecordDict(), nodes=[node])
        assert slow.next().task.id == task
        slow.send(ClientFrame(reply=Reply(task=task, size=len(body), data=first_bytes(body))))
        assert slow.next().go.task == task
        door.give(Order(contents=[b""], tasks=[Addressed(id="second", node=node)]), is_over=True)
        wait_until(lambda: [(one.task, one.code, one.reason) for one in door.answers] == [("second", MISSING, SLOW)])
        slow.send(*[ClientFrame(chunk=chunk) for chunk in further_chunks(body)])
        assert [slow.next().WhichOneof("frame") for _ in range(2)] == ["task", "received"]
        [third] = door.post(RecordDict(), nodes=[node])
        assert slow.next().task.id == third
        slow.close()
    [line] = [one.getMessage() for one in caplog.records if "at the door, late" in one.getMessage()]
    assert fingerprint(key.public_key()) in line


def test_connections_without_a_handshake_are_closed_and_disturb_nobody(home: DoorHome) -> None:
    """Measured: 3,000 of them leave the rounds a second as they are, and take 63 MB for the 10 s."""
    with open_door(home.at, hello=1.0) as door:
        honest = Raw(door, home, home.make_key("undisturbed"))
        node = honest.hello()
        idle = [socket.create_connection(("localhost", door.door.port if door.door else 0)) for _ in range(100)]
        idle[0].send(b"\x16\x03")
        send(door, honest, node, 1000)
        wait_until(lambda: len(door.answers) == 1, 1.0)
        for one in idle:
            one.settimeout(SECONDS)
            with one, suppress(ConnectionResetError):
                assert one.recv(1) == b""
        honest.close()


def test_an_address_holds_few_connections_without_a_call_and_others_are_unaffected(
    home: DoorHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a client whose call has begun stay, also at the same address."""
    monkeypatch.setattr(strangers, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(strangers, "LOOK_SECONDS", 0.1)
    with open_door(home.at, hello=SECONDS, handshakes=3) as door:
        honest = Raw(door, home, home.make_key("same-address"))
        node, port = honest.hello(), int(door.address.rpartition(":")[2])
        many = [_connect(port, "127.0.0.1") for _ in range(20)]
        beside = _connect(port, attacks.STRANGER)
        wait_until(lambda: [*map(attacks.is_open, many)].count(True) == 3)
        held = [*filter(attacks.is_open, many), beside]
        further = _connect(port, "127.0.0.1")
        wait_until(lambda: not attacks.is_open(further))
        assert all(map(attacks.is_open, held))
        send(door, honest, node, 1000)
        wait_until(lambda: len(door.answers) == 1)
        honest.close()
        for one in (*many, beside, further):
            one.close()


def _connect(port: int, host: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), SECONDS, (host, 0))


def test_a_connection_of_a_newcomer_without_a_call_is_closed(home: DoorHome, tmp_path: Path) -> None:
    """It has ended its handshake, and sends what keeps a connection open."""
    make_node_key(key := tmp_path / "stranger.key")
    with open_door(home.at, hello=0.5) as door:
        target = Target(int(door.address.rpartition(":")[2]), home.folder / "ca.pem", key)
        with target.encrypt() as silent:
            time.sleep(0.2)
            assert attacks.is_open(silent)
            wait_until(lambda: not attacks.is_open(silent), 3.0)


def test_the_second_client_with_a_key_replaces_the_first(
    door: FakeNode, home: DoorHome, connect: Callable[..., Raw]
) -> None:
    key = home.make_key("twice")
    first, second = connect(key), connect(key)
    node = first.hello()
    assert second.hello() == node
    assert first.notice().kind == Notice.REPLACED
    [task] = door.post(RecordDict(), nodes=[node])
    assert second.next().task.id == task
    second.send(ClientFrame(reply=Reply(task=task)))
    assert second.next().received.task == task
    assert ("leave", node) not in door.events


def test_clients_that_replace_each_other_are_named_by_both_addresses_and_one_stays(
    door: FakeNode, home: DoorHome, connect: Callable[..., Raw], caplog: pytest.LogCaptureFixture
) -> None:
    key = home.make_key("both")
    clients, found = [connect(key)], list[str]()
    node = clients[0].hello()
    while len(found) < 90 and "notice" not in found:  # a burst of 100 streams without a replacement
        clients.append(connect(key))
        clients[-1].send(HELLO)
        frame = clients[-1].next()
        found.append(frame.WhichOneof("frame") or "")
    assert frame.notice.kind == Notice.TOO_MANY
    [task] = door.post(RecordDict(), nodes=[node])
    assert clients[-2].next().task.id == task
    [line] = [one.getMessage() for one in caplog.records if "at the door, replaced" in one.getMessage()]
    assert fingerprint(key.public_key()) in line
    assert len({*re.findall(r"ipv[46]:\S*:(\d+)", line)}) == 2


def test_a_replaced_client_of_fedloom_ends_with_an_error(home: DoorHome) -> None:
    key = home.make_key("mine")
    with open_door(home.at) as door:
        server = Server(door.address, home.ca, key)
        first = RunningResident(app_of(_echo), server)
        wait_until(lambda: len(door.events) == 1)
        second = RunningResident(app_of(_echo), server)
        first.thread.join(SECONDS)
        assert isinstance(first.error, ConnectError)
        assert "another client with this node's key" in str(first.error)
        second.leave()


def _echo(message: Message, context: Context) -> Message:
    return Message(message.content, reply_to=message)


def test_answers_of_fast_clients_do_not_wait_for_slow_ones(
    door: FakeNode, home: DoorHome, connect: Callable[..., Raw]
) -> None:
    fast, slow = connect(home.make_key("fast")), connect(home.make_key("slow"))
    nodes = [fast.hello(), slow.hello()]
    tasks = door.post(RecordDict(), nodes=nodes)
    fast.next()
    fast.send(ClientFrame(reply=Reply(task=tasks[0])))
    wait_until(lambda: [answer.task for answer in door.answers] == [tasks[0]], 1.0)
    assert door.batches == [1]


def test_answers_that_the_serverapp_missed_are_given_again_and_those_of_former_exchanges_are_dropped(
    door: FakeNode, home: DoorHome, connect: Callable[..., Raw]
) -> None:
    raw = connect(home.make_key("again"))
    node = raw.hello()

    def ask(*awaited: str, new: str = "") -> list[Answer]:
        order = Order(awaited=awaited, contents=[b"c"] if new else [])
        order.tasks.extend([Addressed(id=new, node=node)] if new else [])
        return [*door.ask(order).answers]

    assert ask(new="a") == ask(new="a") == [], "a repeated call is one request"
    assert raw.next().task.id == "a"
    raw.send(ClientFrame(reply=Reply(task="a", size=1, data=b"1")))
    assert [answer.content for answer in ask("a") + ask("a")] == [b"1", b"1"]
    ask(new="b")
    assert [answer.code for answer in ask("a")] == [MISSING], "it was received"
    ask(new="d")
    raw.send(ClientFrame(reply=Reply(task="b", size=1, data=b"1")))
    assert ask("d") == [], "nobody has answered"
    assert [(answer.code, answer.content) for answer in ask("b")] == [(0, b"")]
