"""Admission at a door in this process: certificates that the server issues, tokens, renewal, expiry, revocation."""

import logging
import stat
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from cryptography import x509
from flwr.app import Context, Message, RecordDict
from flwr.common.constant import NOOP_FLWR_AID
from flwr.server.superlink.linkstate import LinkStateFactory
from flwr.supercore.constant import FLWR_IN_MEMORY_DB_NAME
from flwr.supercore.object_store import ObjectStoreFactory
from flwr.superlink.federation import NoOpFederationManager

from client.node.failures import NotAdmittedError, Server, ServerAwayError
from client.node.stream import NodeStream
from common.door.door_pb2 import AdmitReply, AdmitRequest, ClientFrame, Hello, Notice, ServerFrame
from common.door.frames import ADMIT, ADMIT_BYTES, PROTOCOL, RENEWAL, SERVE, DoorLimits
from common.door.identity import (
    Authority,
    certified_key,
    issuer_of,
    newcomers_of,
    node_certificate,
    plain_key,
    private_pem,
)
from common.errors import ConfigError, ConnectError
from common.node_names import fingerprint, read_names, to_pem
from common.wire.codec import encode
from common.wire.messages import ENROL
from deploy.keys import nodes as keys
from deploy.keys.certificates import make_server_certificate
from deploy.keys.nodes import KeyRefusedError, list_nodes, make_token, redeem_token, revoke_key
from deploy.superlink import admission
from deploy.superlink.admission import Allowance
from deploy.superlink.door_node import DoorNode
from deploy.superlink.door_thread import EXPIRES, Address
from server.clients.enrolment import ANSWER_SECONDS, Enrolment
from server.exchange.door import DoorGrid
from server.exchange.grid import PollingGrid, RoundLimits
from server.exchange.relays import HubGrid
from tests.server.simulated_nodes import INVITATION, yes
from tests.support.doors import DoorHome, FakeNode, open_door
from tests.support.residents import RunningResident, app_of, echo, wait_until

Pair = tuple[bytes, bytes]
SECONDS = 5.0
DAY = timedelta(days=1)


@pytest.fixture
def door(home: DoorHome, nodes: Path) -> Iterator[FakeNode]:
    """Yield a door that has no registered key yet."""
    with open_door(home.at, nodes=nodes) as node:
        node.registered = set()
        yield node


def pem_of(key: Any) -> bytes:
    return to_pem(key.public_key())


def call(door: FakeNode, home: DoorHome, pair: Pair, method: str, request: bytes) -> bytes:
    """Return the first bytes that a method answers a caller with this key and certificate."""
    credentials = grpc.ssl_channel_credentials(home.ca, *pair)
    with grpc.secure_channel(door.address, credentials) as channel:
        if method == SERVE:
            return next(channel.stream_stream(method)(iter([request])))
        return channel.unary_unary(method)(request, timeout=SECONDS)


def admit(door: FakeNode, home: DoorHome, key: Any, token: str = "", pair: Pair | None = None) -> AdmitReply:
    request = AdmitRequest(protocol=PROTOCOL, version="1", name="ann", token=token)
    content = request.SerializeToString()
    return AdmitReply.FromString(call(door, home, pair or node_certificate(home.ca, key), ADMIT, content))


def serve(door: FakeNode, home: DoorHome, pair: Pair, **about: Any) -> ServerFrame:
    hello = Hello(**{"protocol": PROTOCOL, "version": "1", **about})
    return ServerFrame.FromString(call(door, home, pair, SERVE, ClientFrame(hello=hello).SerializeToString()))


def test_a_newcomers_certificate_serves_to_ask_for_admission_only(
    door: FakeNode, home: DoorHome, caplog: pytest.LogCaptureFixture
) -> None:
    key = home.make_key("newcomer")
    door.registered = {pem_of(key)}
    pair = node_certificate(home.ca, key)
    with caplog.at_level(logging.WARNING, "flwr"):
        for _ in range(3):
            assert serve(door, home, pair, name="shop-3").notice.kind == Notice.CERTIFICATE_NEEDED
    [line] = [record.getMessage() for record in caplog.records if "certificate needed" in record.getMessage()]
    assert f"key {fingerprint(key.public_key())} 'shop-3' fedloom 1" in line
    with pytest.raises(grpc.RpcError) as failure:
        call(door, home, pair, "/fedloom.door.v1.Door/Other", b"")
    assert failure.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert door.events == []

    reply = admit(door, home, key)
    assert certified_key(reply.certificate) == pem_of(key)
    end = x509.load_pem_x509_certificate(reply.certificate).not_valid_after_utc - datetime.now(UTC)
    assert 29.9 * DAY < end < 30.1 * DAY
    assert serve(door, home, (private_pem(key), reply.certificate)).welcome.node


def test_an_authority_that_a_newcomer_makes_up_issues_nothing(door: FakeNode, home: DoorHome) -> None:
    """It has the private key of the newcomers' authority, and may give its certificates any issuer's name."""
    key = home.make_key("forger")
    forged = Authority(issuer_of(home.key).name, newcomers_of(home.ca).key).certify(key.public_key())
    with pytest.raises(grpc.RpcError) as failure:
        serve(door, home, (private_pem(key), forged))
    assert failure.value.code() == grpc.StatusCode.UNAVAILABLE


def test_an_unknown_key_without_a_token_is_told_what_to_do(
    door: FakeNode, home: DoorHome, caplog: pytest.LogCaptureFixture
) -> None:
    key = home.make_key("unknown")
    with caplog.at_level(logging.WARNING, "flwr"):
        client = RunningResident(app_of(echo), Server(door.address, home.ca, key, name="shop-9"), patience=0.3)
        client.thread.join(SECONDS)
    assert isinstance(client.error, NotAdmittedError)
    assert "(the key is not registered); register its public key at the server (fedloom nodes add)" in str(client.error)
    [line] = [record.getMessage() for record in caplog.records if "at the door, not admitted" in record.getMessage()]
    assert "127.0.0.1" in line or "::1" in line
    assert fingerprint(key.public_key()) in line
    guest = RunningResident(app_of(echo), Server(door.address, home.ca))
    guest.thread.join(SECONDS)
    assert isinstance(guest.error, ConnectError)
    assert "registered keys only" in str(guest.error)


def test_a_token_registers_one_key_under_its_name(door: FakeNode, home: DoorHome, nodes: Path) -> None:
    key, other = home.make_key("first"), home.make_key("second")
    token = make_token(nodes, "shop-3")
    assert token not in (nodes / keys.TOKENS).read_text()
    assert stat.S_IMODE((nodes / keys.TOKENS).stat().st_mode) == 0o600
    refused = admit(door, home, other, token[:-1] + "_").refusal
    assert (refused.kind, refused.text) == (
        Notice.NOT_ADMITTED,
        "the token of the invitation is unknown, or was used before",
    )
    client = RunningResident(app_of(echo), Server(door.address, home.ca, key, token=token))
    wait_until(lambda: ("admit", 7) in door.events)
    client.leave()
    assert door.registered == {pem_of(key)}
    [entry] = list_nodes(nodes)
    assert (entry.name, entry.fingerprint) == ("shop-3", fingerprint(key.public_key()))
    assert "unknown, or was used before" in admit(door, home, other, token).refusal.text
    assert admit(door, home, key, token).certificate, "a registered key needs no token"


def test_of_two_keys_with_one_token_at_once_one_is_registered(door: FakeNode, home: DoorHome, nodes: Path) -> None:
    for attempt in range(5):
        token, replies = make_token(nodes, f"shop-{attempt}"), list[AdmitReply]()
        pair = [home.make_key(f"at-once-{number}") for number in range(2)]
        callers = [
            threading.Thread(target=lambda key=key, token=token, to=replies: to.append(admit(door, home, key, token)))
            for key in pair
        ]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(SECONDS)
        assert [bool(reply.certificate) for reply in replies].count(True) == 1
        assert len(list_nodes(nodes)) == attempt + 1


def test_two_processes_with_one_token_register_one_key(home: DoorHome, nodes: Path) -> None:
    """The lock is of the folder, not of the door: also `fedloom nodes add` of another process takes it."""
    token, outcomes = make_token(nodes, "shop-3"), list[str]()
    pair = [home.make_key(f"folder-{number}").public_key() for number in range(8)]

    def redeem(key: Any) -> None:
        try:
            outcomes.append(redeem_token(nodes, token, key))
        except KeyRefusedError:
            outcomes.append("")

    callers = [threading.Thread(target=redeem, args=(key,)) for key in pair]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(SECONDS)
    assert sorted(outcomes) == [""] * 7 + ["shop-3"]
    assert [*read_names(nodes)] == ["shop-3"]


def test_a_token_expires_and_another_one_for_its_name_ends_it(door: FakeNode, home: DoorHome, nodes: Path) -> None:
    key = home.make_key("late")
    late = make_token(nodes, "late", days=-1e-5)
    assert admit(door, home, key, late).refusal.text == "the token of the invitation has expired"
    first, second = make_token(nodes, "shop-3"), make_token(nodes, "shop-3")
    assert admit(door, home, key, first).refusal.kind == Notice.NOT_ADMITTED
    assert admit(door, home, key, second).certificate
    with pytest.raises(ConfigError, match="name 'shop-3' belongs to key SHA256:"):
        make_token(nodes, "shop-3")


def test_a_revoked_key_is_refused_with_its_valid_certificate_and_with_a_token(
    door: FakeNode, home: DoorHome, nodes: Path
) -> None:
    key = home.make_key("revoked")
    pair = (private_pem(key), admit(door, home, key, make_token(nodes, "eve")).certificate)
    assert serve(door, home, pair).welcome.node
    revoke_key(nodes, "eve")
    door.registered = set()
    for token in ("", make_token(nodes, "again")):
        assert admit(door, home, key, token, pair).refusal.kind == Notice.NOT_ADMITTED
    assert serve(door, home, pair).notice.kind == Notice.NOT_ADMITTED
    assert [entry.state for entry in list_nodes(nodes)] == ["revoked"]
    honest = home.make_key("honest")
    (nodes / keys.TOKENS).write_text("damaged")
    assert "see its log" in admit(door, home, honest, "x").refusal.text, "without the path of a file"


def test_certificates_that_end_are_replaced_without_work_by_hand(home: DoorHome, tmp_path: Path) -> None:
    """One has expired, one was issued under the server's former key, one is damaged, one is of another key."""
    key = home.make_key("renewed")
    former = DoorHome(tmp_path / "former")
    path = Server("x:1", home.ca, key, home.folder / "renewed").certificate._path
    assert path
    contents = [home.issued(key, -1)[1], former.issued(key)[1], b"none", home.issued(home.make_key("another"))[1]]
    with open_door(home.at) as door:
        for number, content in enumerate(contents):
            path.write_bytes(content)
            client = RunningResident(app_of(echo), Server(door.address, home.ca, key, home.folder / "renewed"))
            wait_until(lambda number=number: door.events.count(("admit", 7)) == number + 1)
            client.leave()
            assert any("no longer takes this node's certificate" in event for event in client.events) == (number < 2)
            assert issuer_of(home.key).has_issued(x509.load_pem_x509_certificate(path.read_bytes()))
            assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_server_with_a_new_key_admits_registered_keys_again(home: DoorHome) -> None:
    key = home.make_key("moved")
    server = Server("x:1", home.ca, key, home.folder / "moved")
    server.certificate.store(home.issued(key)[1])
    files = make_server_certificate(home.folder, overwrite=True)
    renewed = Address("localhost:0", home.ca, files.server.read_bytes(), files.server_key.read_bytes())
    with open_door(renewed) as door:
        client = RunningResident(app_of(echo), Server(door.address, home.ca, key, home.folder / "moved"))
        wait_until(lambda: ("admit", 7) in door.events)
        client.leave()
        home.at, home.certificate, home.key = renewed, renewed.certificate, renewed.key


def test_a_certificate_in_its_last_third_is_renewed_on_the_stream(home: DoorHome) -> None:
    key = home.make_key("stream")
    file = home.folder / "stream"
    server = Server("x:1", home.ca, key, file)
    first = home.issued(key, 9.9)[1]
    server.certificate.store(first)
    with open_door(home.at) as door:
        client = RunningResident(app_of(echo), Server(door.address, home.ca, key, file))
        wait_until(lambda: Server("x:1", home.ca, key, file).certificate.pem != first)
        client.leave()
        stored = Server(door.address, home.ca, key, file).certificate.pem
        assert certified_key(stored) == pem_of(key)
        assert x509.load_pem_x509_certificate(stored).not_valid_after_utc > datetime.now(UTC) + 29 * DAY
        again = RunningResident(app_of(echo), Server(door.address, home.ca, key, file))
        wait_until(lambda: door.events.count(("admit", 7)) == 2)
        again.leave()
    assert Server("x:1", home.ca, key, file).certificate.pem == stored, "two thirds of its life are left"


@pytest.mark.parametrize(("capabilities", "is_renewed"), [([], False), (["later", RENEWAL], True)])
def test_a_client_gets_frames_of_its_capabilities_only(
    home: DoorHome, capabilities: list[str], is_renewed: bool
) -> None:
    key = home.make_key("capable")
    hello = Hello(protocol=PROTOCOL, capabilities=capabilities)
    with (
        open_door(home.at, silence=0.6) as door,
        grpc.secure_channel(door.address, grpc.ssl_channel_credentials(home.ca, *home.issued(key, 9.9))) as channel,
    ):
        frames = iter([ClientFrame(hello=hello).SerializeToString()])
        found = [ServerFrame.FromString(one).WhichOneof("frame") for one in channel.stream_stream(SERVE)(_held(frames))]
    assert found == ["welcome", *(["certificate"] if is_renewed else []), "notice"]


def _held(frames: Iterator[bytes]) -> Iterator[bytes]:
    yield from frames
    threading.Event().wait(1.0)


def test_a_client_takes_no_certificate_of_another_key(home: DoorHome, tmp_path: Path) -> None:
    key = home.make_key("mine")
    certificate = Server("x:1", home.ca, key, tmp_path / "missing" / "mine").certificate
    assert not certificate.store(home.issued(home.make_key("theirs"))[1])
    assert not certificate.store(b"\0" * 20_000)
    assert certificate.pem == b""
    ours = home.issued(key)[1]
    assert certificate.store(ours), "a folder that cannot be written costs the file alone"
    assert certificate.pem == ours


def test_another_nodes_certificate_is_of_no_use(door: FakeNode, home: DoorHome) -> None:
    key, other = home.make_key("thief"), home.make_key("owner")
    door.registered = {pem_of(other)}
    with pytest.raises(grpc.RpcError) as failure:
        serve(door, home, (private_pem(key), home.issued(other)[1]))
    assert failure.value.code() == grpc.StatusCode.UNAVAILABLE
    assert door.events == []


@pytest.mark.parametrize("protocol", [0, PROTOCOL - 1, PROTOCOL + 1])
def test_another_version_is_refused_as_such(door: FakeNode, home: DoorHome, protocol: int) -> None:
    pair = node_certificate(home.ca, home.make_key("older"))  # clients before version 2 have no other one
    assert serve(door, home, pair, protocol=protocol).notice.kind == Notice.VERSION
    request = AdmitRequest(protocol=protocol).SerializeToString()
    assert AdmitReply.FromString(call(door, home, pair, ADMIT, request)).refusal.kind == Notice.VERSION


def test_malformed_and_large_requests_are_refused_as_such(door: FakeNode, home: DoorHome) -> None:
    pair = node_certificate(home.ca, home.make_key("garbage"))
    for request in (b"\xff" * 9, bytes(ADMIT_BYTES + 1), b"\x1a\x02\xff\xff"):
        assert AdmitReply.FromString(call(door, home, pair, ADMIT, request)).refusal.kind == Notice.MALFORMED
    assert AdmitReply.FromString(call(door, home, pair, ADMIT, b"")).refusal.kind == Notice.VERSION


@pytest.mark.parametrize(("admit_all", "admitted"), [(5, 3), (0.5, 1)])
def test_requests_of_an_address_and_of_all_are_limited(home: DoorHome, admit_all: float, admitted: int) -> None:
    key = home.make_key("flood")
    with open_door(home.at, admit=0.01, admit_burst=3, admit_all=admit_all) as door:
        replies = [admit(door, home, key) for _ in range(5)]
        assert [bool(reply.certificate) for reply in replies].count(True) == admitted
        assert replies[-1].refusal.kind == Notice.TOO_MANY
        with pytest.raises(ServerAwayError, match="too many requests for admission"):
            NodeStream(Server(door.address, home.ca, key), threading.Event()).__enter__()
        assert serve(door, home, home.issued(key)).welcome.node, "who has a certificate needs no admission"


def test_a_key_is_registered_at_flowers_state_once() -> None:
    state = LinkStateFactory(FLWR_IN_MEMORY_DB_NAME, NoOpFederationManager(), ObjectStoreFactory()).state()
    node = DoorNode(state, authenticates=True)
    assert not node.is_registered(b"key")
    assert node.register(b"key")
    assert node.register(b"key"), "another call was first"
    number = node.admit(b"key")
    assert number
    state.delete_node(NOOP_FLWR_AID, number)
    assert not node.register(b"key"), "a revoked key stays refused"


def test_a_door_states_when_its_certificate_ends(door: FakeNode, home: DoorHome) -> None:
    assert door.door
    [end] = [line.split()[1] for line in door.door.metrics.splitlines() if line.startswith(EXPIRES)]
    assert (
        datetime.fromtimestamp(float(end), UTC) == x509.load_pem_x509_certificate(home.certificate).not_valid_after_utc
    )
    with open_door() as plain:
        assert plain.door
        assert plain.door.metrics == ""


def test_the_pause_of_a_barred_key_doubles_up_to_a_limit_and_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now, pauses = 1e6, list[float]()
    monkeypatch.setattr(admission.time, "monotonic", lambda: now)
    allowance = Allowance(DoorLimits(barred=10.0))
    for calm in (0.0, 0.0, 79.0, 0.0, 0.0, 81.0):
        now += calm
        allowance.bar()
        pauses.append(allowance.barred_until - now)
        assert allowance.is_barred
        now = allowance.barred_until
    assert pauses == [10.0, 20.0, 40.0, 80.0, 80.0, 10.0]


def test_keys_have_one_form(home: DoorHome) -> None:
    key = home.make_key("form")
    assert certified_key(node_certificate(home.ca, key)[1]) == plain_key(to_pem(key.public_key()))
    assert certified_key(home.ca) != b""
    assert (certified_key(b"none"), plain_key(b"none")) == (b"", b"")


def test_a_newcomer_whose_answer_to_the_invitation_is_slow_holds_up_no_gathering_and_no_round(home: DoorHome) -> None:
    online: Any = SimpleNamespace(get_nodes=tuple)
    waits: list[float] = []

    def ask(messages: list[Message], seconds: float) -> list[Message]:
        waits.append(seconds)
        return grid.send_and_receive(messages, timeout=seconds) if seconds else grid.post(messages)

    def answer(message: Message, context: Context) -> Message:
        name = "ann" if message.metadata.dst_node_id == 7 else "bob"
        assert name == "ann" or may_answer.wait(SECONDS)
        return Message(encode(yes(name)) if message.metadata.message_type == ENROL else RecordDict(), reply_to=message)

    may_answer, enrolment = threading.Event(), Enrolment(INVITATION, 10.0, ask)
    with open_door(home.at) as door:
        grid = PollingGrid(HubGrid(DoorGrid(online, lambda ids: (), door.ask)), RoundLimits(1, 60.0, 0.0))
        clients = []
        for number, name in enumerate(("ann", "bob"), start=1):
            clients.append(RunningResident(answer, Server(door.address, home.ca, home.make_key(name))))
            wait_until(lambda number=number: len(door.nodes) == number)
            online.get_node_ids = door.nodes.values
            for _ in range(2):
                assert [*enrolment.gather(grid, 1)] == ["ann"]
                assert len(grid.send_and_receive([Message(RecordDict(), 7, "train")])) == 1
        may_answer.set()
        wait_until(lambda: [*enrolment.gather(grid, 1)] == ["ann", "bob"])
        for client in clients:
            client.leave()
    assert (waits[0], {*waits[1:]}) == (ANSWER_SECONDS, {0.0}), "nobody waits for the newcomer"
