"""A server that resets each connection before the client has begun TLS."""

import contextlib
import gc
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest

from client.node.failures import (
    CertificateRefusedError,
    NotAdmittedError,
    RunOverError,
    Server,
    ServerAwayError,
    diagnose,
    explain,
    refusal,
)
from common.door.door_pb2 import Notice
from common.errors import ConfigError, ConnectError
from deploy.keys.certificates import Certificates, make_authority, make_server_certificate
from deploy.keys.nodes import load_private_key, make_node_key
from deploy.superlink.superlink import free_port

Serve = Callable[..., str]


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    make_authority(tmp_path)
    return make_server_certificate(tmp_path)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Return a function that starts a listener, which shakes hands, closes the connection and returns its address."""
    listeners: list[socket.socket] = []

    def start(certificates: Certificates | None = None, protocols: tuple[str, ...] = ("h2",)) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        context = None
        if certificates is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificates.server, certificates.server_key)
            context.set_alpn_protocols(list(protocols))
        threading.Thread(target=_greet, args=(listener, context), daemon=True).start()
        return f"127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for listener in listeners:
        listener.close()


def _greet(listener: socket.socket, context: ssl.SSLContext | None) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        connection.settimeout(2)
        try:
            if context is None:
                connection.recv(1)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                connection.close()
            else:
                context.wrap_socket(connection, server_side=True).close()
        except OSError:
            connection.close()


def test_no_server_listens() -> None:
    fault = diagnose(Server(f"127.0.0.1:{free_port()}"))
    assert isinstance(fault, ServerAwayError)
    assert "no server at" in str(fault)


def test_unknown_host() -> None:
    assert isinstance(diagnose(Server("no-such-host.invalid:1")), ServerAwayError)


def test_a_valid_server_without_answers_may_return(certificates: Certificates, serve: Serve) -> None:
    fault = diagnose(Server(serve(certificates), certificates.ca.read_bytes()))
    assert isinstance(fault, ServerAwayError)


def _for_good(fault: ConnectError) -> str:
    assert type(fault) is ConnectError
    return str(fault)


def test_expired_certificate(tmp_path: Path, serve: Serve) -> None:
    make_authority(tmp_path)
    expired = make_server_certificate(tmp_path, days=-1)
    text = _for_good(diagnose(Server(serve(expired), expired.ca.read_bytes())))
    assert "has expired: here it is " in text
    assert f"{datetime.now(UTC):%Y-%m-%d}" in text, "an owner whose clock is years ahead must see it"


def test_a_certificate_of_the_future_is_waited_for_since_the_clock_may_be_set(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deploy.keys.certificates._CLOCK_SLACK", timedelta(days=-400))
    make_authority(tmp_path)
    later = make_server_certificate(tmp_path, days=800)
    fault = diagnose(Server(serve(later), later.ca.read_bytes()))
    assert isinstance(fault, NotAdmittedError)
    assert "is not valid yet: here it is " in str(fault)


def test_wrong_authority(tmp_path: Path, certificates: Certificates, serve: Serve) -> None:
    other = make_authority(tmp_path / "other")
    fault = diagnose(Server(serve(certificates), other.ca.read_bytes()))
    assert "not signed by the given CA" in _for_good(fault)


def test_certificate_for_another_name(certificates: Certificates, serve: Serve) -> None:
    port = serve(certificates).rpartition(":")[2]
    fault = diagnose(Server(f"127.0.0.2:{port}".replace("127.0.0.2", "127.1"), certificates.ca.read_bytes()))
    assert "not valid for '127.1'; join under a name in it (localhost, 127.0.0.1, 0:0:0:0:0:0:0:1)" in _for_good(fault)


def test_ca_file_without_certificate(certificates: Certificates, serve: Serve) -> None:
    assert "CA file" in _for_good(diagnose(Server(serve(certificates), b"not a certificate")))


def test_plaintext_server_with_a_tls_client(certificates: Certificates, serve: Serve) -> None:
    assert "does not use TLS" in _for_good(diagnose(Server(serve(), certificates.ca.read_bytes())))


def test_tls_server_with_a_plaintext_client(certificates: Certificates, serve: Serve) -> None:
    assert "requires TLS" in _for_good(diagnose(Server(serve(certificates))))


def test_web_port_instead_of_the_port_of_clients(certificates: Certificates, serve: Serve) -> None:
    fault = diagnose(Server(serve(certificates, protocols=("http/1.1",)), certificates.ca.read_bytes()))
    assert "is not the port that clients join" in _for_good(fault)


class _Failed(grpc.RpcError):
    def __init__(self, code: grpc.StatusCode, details: str = "") -> None:
        self._code, self._details = code, details

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (_Failed(grpc.StatusCode.UNIMPLEMENTED), ConnectError, "has no door for clients of fedloom"),
        (_Failed(grpc.StatusCode.RESOURCE_EXHAUSTED), ServerAwayError, "too large"),
        (_Failed(grpc.StatusCode.INTERNAL), ServerAwayError, "INTERNAL"),
    ],
)
def test_each_status_has_its_error(error: grpc.RpcError, kind: type[Exception], text: str) -> None:
    explained = explain(error, Server("localhost:9092"))
    assert type(explained) is kind
    assert text in str(explained)


@pytest.mark.parametrize(
    ("kind", "error", "text"),
    [
        (Notice.NOT_ADMITTED, NotAdmittedError, "register its public key"),
        (Notice.CERTIFICATE_NEEDED, CertificateRefusedError, "does not take this node's certificate: why"),
        (Notice.REPLACED, ConnectError, "give each client a key of its own"),
        (Notice.RUN_OVER, RunOverError, "why"),
        (Notice.TOO_LARGE, RunOverError, "takes no message of this size: why"),
        (Notice.VERSION, ConnectError, "another version"),
        (Notice.TOO_MANY, ServerAwayError, "has ended the connection: why"),
    ],
)
def test_each_notice_has_its_error(kind: Notice.Kind, error: type[Exception], text: str) -> None:
    refused = refusal(Notice(kind=kind, text="why"), Server("localhost:9092"))
    assert type(refused) is error
    assert text in str(refused)


@pytest.mark.parametrize("address", ["localhost", "localhost:", ":9092", "localhost:http"])
def test_an_address_needs_host_and_port(address: str) -> None:
    with pytest.raises(ConfigError, match="HOST:PORT"):
        Server(address)


def test_ipv6_addresses_are_parsed() -> None:
    server = Server("[::1]:9092")
    assert (server.host, server.port) == ("::1", 9092)


def test_a_key_is_neither_sent_without_tls_nor_logged(tmp_path: Path) -> None:
    make_node_key(tmp_path / "node.key")
    key = load_private_key(tmp_path / "node.key")
    with pytest.raises(ConfigError, match="--ca"):
        Server("localhost:9092", key=key)
    assert "key" not in repr(Server("localhost:9092", b"ca", key))


@pytest.mark.parametrize("encrypted", [True, False])
def test_the_probe_leaves_no_socket_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encrypted: bool) -> None:
    """Warnings are errors in tests: an unclosed socket would fail this one."""
    listener = socket.create_server(("127.0.0.1", 0))

    def reset_all() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                time.sleep(0.05)  # the client has connected, and has not wrapped its socket yet
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()

    def make_context_after_reset(*arguments: Any, **options: Any) -> ssl.SSLContext:
        time.sleep(0.1)
        return context(*arguments, **options)

    context = ssl.create_default_context
    monkeypatch.setattr(ssl, "create_default_context", make_context_after_reset)
    threading.Thread(target=reset_all, daemon=True).start()
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    with listener:
        fault = diagnose(Server(address, make_authority(tmp_path).ca.read_bytes() if encrypted else b""))
    gc.collect()
    assert isinstance(fault, ServerAwayError)
