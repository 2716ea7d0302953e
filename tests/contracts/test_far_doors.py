"""Doors on other machines: they serve clients as the server's own door does, and are believed by their key alone."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from flwr.app import ConfigRecord, Context, Message, RecordDict

from client.node.failures import NotAdmittedError, Server
from common.door.door_pb2 import AdmitReply, AdmitRequest, ClientFrame, Heartbeat, Hello, Notice, ServerFrame
from common.door.frames import ADMIT, FORWARDED, PROTOCOL, SERVE
from common.door.identity import node_certificate
from common.node_names import fingerprint, to_pem
from deploy.keys.certificates import make_server_certificate
from deploy.keys.nodes import DOORS, KeyRefusedError, list_nodes, make_token, revoke_key
from deploy.superlink import far_door
from deploy.superlink.superlink import free_port
from tests.support.doors import DoorHome, FakeNode, RunningFarDoor, open_door, register_door
from tests.support.residents import RunningResident, app_of, echo, wait_until

MEGABYTES, PATIENCE = 3, 20.0


@pytest.fixture
def door(home: DoorHome, nodes: Path) -> Iterator[FakeNode]:
    with open_door(home.at, nodes=nodes, hello=2.0, frames=10.0, burst=50) as node:
        yield node


@pytest.fixture
def far(door: FakeNode, home: DoorHome, nodes: Path) -> Iterator[RunningFarDoor]:
    opened = RunningFarDoor(door, home, nodes, hello=0.5)
    assert opened.error is None
    yield opened
    opened.close()


def send_back(message: Message, context: Context) -> Message:
    return Message(message.content, reply_to=message)


def content(megabytes: int = MEGABYTES) -> RecordDict:
    return RecordDict({"a": ConfigRecord({"b": bytes(megabytes * 10**6)})})


def call(address: str, home: DoorHome, pair: tuple[bytes, bytes], method: str, frame: bytes, **about: Any) -> bytes:
    with grpc.secure_channel(address, grpc.ssl_channel_credentials(home.ca, *pair)) as channel:
        return next(channel.stream_stream(method)(iter([frame]), timeout=PATIENCE, **about))


HELLO = ClientFrame(hello=Hello(protocol=PROTOCOL, version="1")).SerializeToString()


def test_clients_of_another_door_are_as_those_of_the_servers_own(
    door: FakeNode, far: RunningFarDoor, home: DoorHome
) -> None:
    addresses = (far.address, far.address, far.address, door.address)
    keys = [home.make_key(f"ann-{number}") for number in range(4)]
    clients = [
        RunningResident(app_of(send_back), Server(address, home.ca, key))
        for address, key in zip(addresses, keys, strict=True)
    ]
    wait_until(lambda: len(door.events) == 4, PATIENCE)
    assert {*door.nodes} == {to_pem(key.public_key()) for key in keys}
    door.post(content(), nodes=door.nodes.values())
    wait_until(lambda: len(door.replies) == 4, PATIENCE)
    assert [reply.config_records["a"]["b"] == bytes(MEGABYTES * 10**6) for reply in door.replies] == [True] * 4
    wait_until(lambda: {*door.beats} == {*door.nodes.values()}, PATIENCE)
    for client in clients:
        client.leave()
        assert client.error is None
    wait_until(lambda: len(door.events) == 8, PATIENCE)


def test_admission_renewal_and_revocation_come_through_another_door(
    door: FakeNode, far: RunningFarDoor, home: DoorHome, nodes: Path
) -> None:
    key, door.registered = home.make_key("new"), set()
    token, file = make_token(nodes, "shop-3"), home.folder / "new"
    server = Server(far.address, home.ca, key, file, token=token)
    client = RunningResident(app_of(echo), server, patience=0.0)
    wait_until(lambda: ("admit", 7) in door.events, PATIENCE)
    client.leave()
    assert [entry.name for entry in list_nodes(nodes) if entry.state == "registered"] == ["shop-3"]
    server.certificate.store(early := home.issued(key, 9.9)[1])
    client = RunningResident(app_of(echo), Server(far.address, home.ca, key, file), patience=0.0)
    wait_until(lambda: Server("x:1", home.ca, key, file).certificate.pem != early, PATIENCE)
    door.revoked, door.registered = {7}, set()
    client.thread.join(PATIENCE)
    assert isinstance(client.error, NotAdmittedError)


def test_limits_and_refusals_are_by_client_and_its_address(
    door: FakeNode, far: RunningFarDoor, home: DoorHome, caplog: pytest.LogCaptureFixture
) -> None:
    flood, stranger = home.make_key("flood"), home.make_key("stranger")
    beats = [ClientFrame(heartbeat=Heartbeat()).SerializeToString()] * 200
    with caplog.at_level(logging.WARNING):
        credentials = grpc.ssl_channel_credentials(home.ca, *home.issued(flood))
        with grpc.secure_channel(far.address, credentials) as channel:
            found = [ServerFrame.FromString(one) for one in channel.stream_stream(SERVE)(iter([HELLO, *beats]))]
            assert found[-1].notice.kind == Notice.TOO_MANY
            with pytest.raises(grpc.RpcError) as large:
                [*channel.stream_stream(SERVE)(iter([bytes(2**20)]))]
            assert large.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        newcomer = node_certificate(home.ca, stranger)
        answer = ServerFrame.FromString(call(far.address, home, newcomer, SERVE, HELLO))
        assert answer.notice.kind == Notice.CERTIFICATE_NEEDED
        request = AdmitRequest(protocol=PROTOCOL - 1).SerializeToString()
        refused = AdmitReply.FromString(call(far.address, home, newcomer, ADMIT, request)).refusal
        assert refused.kind == Notice.VERSION
    lines = [line.getMessage() for line in caplog.records if fingerprint(stranger.public_key()) in line.getMessage()]
    assert len(lines) == 2
    assert all("127.0.0.1" in line or "::1" in line for line in lines)


def test_a_key_that_is_no_door_is_not_believed(
    door: FakeNode, home: DoorHome, nodes: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither a registered client nor a stranger, in whose name it may be."""
    client, victim = home.make_key("client"), home.issued(home.make_key("victim"))[1]
    with caplog.at_level(logging.WARNING, "flwr"):
        for pair in (home.issued(client), node_certificate(home.ca, client)):
            for method in (SERVE, ADMIT):
                with pytest.raises(grpc.RpcError) as failure:
                    call(door.address, home, pair, method, HELLO, metadata=((FORWARDED, victim),))
                assert failure.value.code() == grpc.StatusCode.PERMISSION_DENIED
    assert door.events == []
    assert sum("no door of this server" in record.getMessage() for record in caplog.records) == 1
    assert "nodes add with --door" in str(RunningFarDoor(door, home, None).error), "any key is that of a client here"
    register_door(nodes, home, client)
    with pytest.raises(grpc.RpcError) as failure:
        call(door.address, home, home.issued(client), SERVE, HELLO, metadata=((FORWARDED, b"none"),))
    assert failure.value.code() == grpc.StatusCode.PERMISSION_DENIED


def test_a_connection_of_a_client_has_two_calls(door: FakeNode, home: DoorHome) -> None:
    """Those beyond end at their header, also at a method that would wait for a message."""
    credentials = grpc.ssl_channel_credentials(home.ca, *home.issued(home.make_key("many")))
    with grpc.secure_channel(door.address, credentials) as channel:
        calls = [channel.stream_stream(method)(_silence()) for method in (SERVE, ADMIT, SERVE, ADMIT, ADMIT)]
        codes = list[grpc.StatusCode]()
        for one in calls:
            with suppress(grpc.RpcError):
                list(one)
            codes.append(one.code())
    assert sorted(code.name for code in codes) == ["OK"] * 2 + ["RESOURCE_EXHAUSTED"] * 3


def _silence() -> Iterator[bytes]:
    time.sleep(1.0)
    yield from ()


@pytest.mark.parametrize("end", ["closed", "revoked"])
def test_a_door_that_ends_costs_a_reconnect_and_no_second_answer(
    end: str, door: FakeNode, far: RunningFarDoor, home: DoorHome, nodes: Path
) -> None:
    """Its client has the request, and answers through the door that is there next."""
    trained, doors = list[int](), [far]

    def train(message: Message, context: Context) -> Message:
        trained.append(1)
        if end == "revoked":
            revoke_key(nodes / DOORS, fingerprint(far.key.public_key()))
            wait_until(lambda: ("leave", 7) in door.events, PATIENCE)
        far.close()
        doors.append(RunningFarDoor(door, home, nodes, far.address))
        return Message(content(), reply_to=message)

    [task] = door.post(content())
    client = RunningResident(app_of(train), Server(far.address, home.ca, home.make_key(end)))
    wait_until(lambda: len(door.answers) == 1, PATIENCE)
    client.leave()
    doors[-1].close()
    assert client.error is None
    assert (trained, [answer.task for answer in door.answers]) == ([1], [task])
    assert "leave" in {event for event, _ in door.events}
    if end == "revoked":
        assert [entry.state for entry in list_nodes(nodes / DOORS)] == ["registered", "revoked"]
        with pytest.raises(KeyRefusedError):
            register_door(nodes, home, far.key)


def test_a_server_that_returns_with_another_key_serves_again_through_its_door(nodes: Path, tmp_path: Path) -> None:
    """Clients wait with a reason in between; the door takes their new certificates, which the new key signs."""
    home, at = DoorHome(tmp_path / "home"), f"localhost:{free_port()}"
    with open_door(replace(home.at, address=at), nodes=nodes) as door:
        far = RunningFarDoor(door, home, nodes)
        client = RunningResident(app_of(echo), Server(far.address, home.ca, home.make_key("waits")))
        wait_until(lambda: ("admit", 7) in door.events, PATIENCE)
    wait_until(lambda: any(f"{far.address} does not answer; waiting" in event for event in client.events), PATIENCE)
    files = make_server_certificate(home.folder, overwrite=True)
    renewed = replace(home.at, address=at, certificate=files.server.read_bytes(), key=files.server_key.read_bytes())
    with open_door(renewed, nodes=nodes) as door:
        wait_until(lambda: ("admit", 7) in door.events, PATIENCE)
        door.post(content())
        wait_until(lambda: len(door.replies) == 1, PATIENCE)
        client.leave()
        far.close()
    assert client.error is None


def test_a_request_that_a_client_does_not_read_waits_at_its_server(
    door: FakeNode, far: RunningFarDoor, home: DoorHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = list[int]()
    pass_on = far_door._pass_on

    async def counted(first: Any, context: Any, to_server: Any) -> bool:
        async def write(frame: bytes) -> None:
            written.append(len(frame))
            await context.write(frame)

        return await pass_on(first, SimpleNamespace(read=context.read, write=write), to_server)

    monkeypatch.setattr(far_door, "_pass_on", counted)
    pair, over = home.issued(home.make_key("idle")), threading.Event()
    with grpc.secure_channel(far.address, grpc.ssl_channel_credentials(home.ca, *pair)) as channel:
        stream = channel.stream_stream(SERVE)(_held(over))
        node = ServerFrame.FromString(next(stream)).welcome.node
        door.post(content(40), nodes=[node])
        wait_until(lambda: len(written) > 1, PATIENCE)
        time.sleep(0.5)
        assert len(written) < 40, "of 153 frames"
        over.set()


def _held(over: threading.Event) -> Iterator[bytes]:
    yield HELLO
    over.wait(PATIENCE)
