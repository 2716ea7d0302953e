"""Server of a client, the client's entry at it, and typed errors of failed calls, each with a remedy."""

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import grpc
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from common.errors import ConfigError, ConnectError, FedloomError
from common.files import write_atomically
from common.text import printable


@dataclass(frozen=True)
class LastNode:
    """Number of the node that the server gave to this client's key.

    The server refuses a second connection of a key until it misses the heartbeats of the first, for 20 s. A client that knows
    its number ends the first connection itself. Only the holder of the key can do so. Without a path, no number is kept.
    """

    path: Path | None = None

    def read(self) -> int | None:
        """Return the number of the last connection; None without one."""
        try:
            return int(self.path.read_text("ascii")) if self.path else None
        except (OSError, ValueError):
            return None

    def write(self, node_id: int) -> None:
        """Keep the number of a new connection."""
        if self.path and self.read() != node_id:
            write_atomically(self.path, str(node_id).encode(), mode=0o600)


PROBE_SECONDS = 3.0  # seconds
_EXPIRED, _NOT_YET_VALID, _WRONG_NAME, _WRONG_IP = 10, 9, 62, 64  # X509_V_ERR_* of OpenSSL


class ServerAwayError(ConnectError):
    """Server that does not answer; it may start later."""


class NotAdmittedError(ConnectError):
    """Node that the server does not admit (yet): its key, its last session or a clock is the reason."""


class RunOverError(FedloomError):
    """Message of a run that has ended, or one too large to be answered."""


@dataclass(frozen=True)
class Server:
    """Address of the federation and identity of this node.

    Args:
        address: `host:port` of the Fleet API.
        ca: PEM of the certificate authority of the server; empty for an unencrypted connection.
        key: Private key of this node; None for a guest, which a server with authentication refuses.
        last_node: Number of this node's last connection, which the next one takes over.
    """

    address: str
    ca: bytes = b""
    key: EllipticCurvePrivateKey | None = field(default=None, repr=False)
    last_node: LastNode = field(default_factory=LastNode)

    def __post_init__(self) -> None:
        """Refuse an address without a port, and a key without encryption."""
        host, _, port = self.address.rpartition(":")
        if not host or not port.isdecimal():
            raise ConfigError(f"invalid server address '{self.address}'; use HOST:PORT, for instance localhost:9092")
        if self.key is not None and not self.ca:
            raise ConfigError("a node key needs an encrypted connection; give the server's CA with --ca")

    @property
    def host(self) -> str:
        """Host name or address, without brackets."""
        return self.address.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """Port of the Fleet API."""
        return int(self.address.rpartition(":")[2])


def diagnose(server: Server) -> ConnectError:
    """Return the reason why no call succeeds, after a plain TCP connection and one with a TLS handshake."""
    try:
        with socket.create_connection((server.host, server.port), timeout=PROBE_SECONDS) as connection:
            return _handshake(server, connection) if server.ca else _probe_plaintext(server, connection)
    except OSError as error:  # name not found, refused, no route, timeout
        return ServerAwayError(
            f"no server at {server.address} ({error.strerror or error}); start it or correct the address"
        )


def _handshake(server: Server, connection: socket.socket) -> ConnectError:
    try:
        context = ssl.create_default_context(cadata=server.ca.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError, ValueError):
        return ConnectError("the CA file has no certificate; use the PEM file of the server's owner (ca.pem)")
    context.set_alpn_protocols(["h2"])
    try:
        with _shake_hands(context, server, connection) as tls:
            if tls.selected_alpn_protocol() != "h2":
                return ConnectError(f"{server.address} is not a Fleet API; use the port that clients join")
            return ServerAwayError(f"{server.address} does not answer")
    except ssl.SSLCertVerificationError as error:
        kind = NotAdmittedError if error.verify_code == _NOT_YET_VALID else ConnectError  # the clock may be set soon
        return kind(_describe_certificate_fault(server, error))
    except ssl.SSLError as error:
        if error.reason == "WRONG_VERSION_NUMBER":
            return ConnectError(
                f"{server.address} does not use TLS; set up certificates there, or join with --insecure and without --ca and"
                " --key for an experiment"
            )
        return ServerAwayError(f"{server.address}: TLS handshake failed ({error.reason})")


@contextmanager
def _shake_hands(context: ssl.SSLContext, server: Server, connection: socket.socket) -> Iterator[ssl.SSLSocket]:
    """Close `connection`, and yield one with TLS to its peer.

    The socket is wrapped before it connects: `wrap_socket` of Python 3.11 leaks a socket that the peer has reset.
    """
    family, peer = connection.family, connection.getpeername()
    connection.close()
    with context.wrap_socket(socket.socket(family), server_hostname=server.host) as tls:
        tls.settimeout(PROBE_SECONDS)
        tls.connect(peer)
        yield tls


def _describe_certificate_fault(server: Server, error: ssl.SSLCertVerificationError) -> str:
    match error.verify_code:
        case code if code == _EXPIRED:
            return (
                f"the certificate of {server.address} has expired: here it is {format_clock()}; set the clock of this machine"
                " if that is wrong, else the server's owner must create a new one (fedloom keys server --renew)"
            )
        case code if code == _NOT_YET_VALID:
            return (
                f"the certificate of {server.address} is not valid yet: here it is {format_clock()}; set the clock of this"
                " machine by NTP"
            )
        case code if code in (_WRONG_NAME, _WRONG_IP):
            return (
                f"the certificate of {server.address} is not valid for '{server.host}'; join under a name in it"
                f"{_list_certificate_names(server)}, or let the server's owner create a certificate for this name"
            )
        case _:
            return (
                f"the certificate of {server.address} is not signed by the given CA (wrong CA, or another server);"
                " ask the server's owner for the current ca.pem"
            )


def format_clock() -> str:
    """Return the time of this machine's clock, as text for messages."""
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


def _list_certificate_names(server: Server) -> str:
    """Return the names in the server's certificate, in brackets; empty if they cannot be read."""
    context = ssl.create_default_context(cadata=server.ca.decode("ascii"))
    context.check_hostname = False  # the CA is still required; only the names are wrong
    try:
        with (
            socket.create_connection((server.host, server.port), timeout=PROBE_SECONDS) as connection,
            _shake_hands(context, server, connection) as tls,
        ):
            names = [value for entry in (tls.getpeercert() or {}).get("subjectAltName", ()) for value in entry[1:]]
    except OSError:
        return ""
    return f" ({printable(', '.join(map(str, names)))})"


def _probe_plaintext(server: Server, connection: socket.socket) -> ConnectError:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # only checks if TLS is in use; sends nothing
    try:
        with _shake_hands(context, server, connection):
            pass
    except OSError:
        return ServerAwayError(f"{server.address} does not answer")
    return ConnectError(f"{server.address} requires TLS; give the server's CA with --ca")


_ACTIVATION_FAILED, _KEYS_ARE_REQUIRED = 2004, 2001  # Flower's ApiErrorCode


def explain(error: grpc.RpcError, server: Server) -> FedloomError:
    """Return the error to raise for a failed call.

    It is an error of `client.node.failures` if retrying can help, else a plain ConnectError.
    """
    status, details = error.code(), error.details() or ""
    match status:
        case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.DEADLINE_EXCEEDED:
            return diagnose(server)
        case grpc.StatusCode.PERMISSION_DENIED:
            return RunOverError("the run has ended")
        case grpc.StatusCode.RESOURCE_EXHAUSTED if "larger than max" in details:
            return RunOverError(
                f"{server.address} takes no message of this size; its owner can raise FEDLOOM_MOST_UPLOAD there"
            )
        case grpc.StatusCode.UNAUTHENTICATED if "timestamp" in details:
            return NotAdmittedError(
                f"{server.address}: the clock of this machine or of the server is wrong; here it is {format_clock()}, and a"
                " client may be five seconds ahead or five minutes behind; set both by NTP"
            )
        case grpc.StatusCode.UNAUTHENTICATED:
            return NotAdmittedError(f"{server.address} no longer recognizes this node")
        case grpc.StatusCode.FAILED_PRECONDITION:
            return _explain_refusal(server, details)
        case grpc.StatusCode.UNIMPLEMENTED:
            return ConnectError(f"{server.address} is not a Fleet API of Flower 1.39; check address and version")
        case _:
            return ServerAwayError(f"{server.address} returned gRPC status {status.name}")


def _explain_refusal(server: Server, details: str) -> ConnectError:
    try:
        payload = json.loads(details)
        code, text = payload.get("code"), payload.get("detail", "")
    except (ValueError, AttributeError):
        code, text = None, details
    if code == _ACTIVATION_FAILED:
        return NotAdmittedError(
            f"{server.address} does not admit this node's key; register its public key at the server"
            " or end the other client that uses the same key"
        )
    if code == _KEYS_ARE_REQUIRED:
        return ConnectError(f"{server.address} admits registered keys only; give this node's key with --key")
    return ConnectError(f"{server.address} refuses this node: {text}")
