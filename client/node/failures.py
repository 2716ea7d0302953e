"""Server of a client, the client's identity there, and errors of failed calls with their remedies."""

import hashlib
import logging
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import grpc
from cryptography.hazmat.primitives.asymmetric.ec import SECP384R1, EllipticCurvePrivateKey, generate_private_key

from common.door.door_pb2 import Notice
from common.door.identity import certified_key
from common.errors import ConfigError, ConnectError, FedloomError
from common.files import write_atomically
from common.hosts import check_address, find_proxy
from common.node_names import to_pem
from common.text import printable

PROBE_SECONDS = 3.0  # seconds
_EXPIRED, _NOT_YET_VALID, _WRONG_NAME, _WRONG_IP = 10, 9, 62, 64  # X509_V_ERR_* of OpenSSL


class ServerAwayError(ConnectError):
    """Server that does not answer; it may start later."""


class CertificateRefusedError(ServerAwayError):
    """Server that shakes hands and then does not serve this node; its certificate may be the reason."""


class NotAdmittedError(ConnectError):
    """Node that the server does not admit (yet): its key, its last session or a clock is the reason."""


class ExcessError(ConnectError):
    """Server that sends more, or faster, than it may; the client pauses before it joins again."""


class RunOverError(FedloomError):
    """Message of a run that has ended, or one too large to be answered."""


_log = logging.getLogger("fedloom.node")

MOST_CERTIFICATE = 8192
"""Largest certificate in bytes."""


class NodeCertificate:
    """Certificate that a server issued for this node's key, in a file beside the key.

    The server alone decides if it is valid. A file that cannot be written costs a request for admission at the next start.

    Args:
        key: Private key of the node.
        path: The file; None for a node whose key has none.
    """

    def __init__(self, key: EllipticCurvePrivateKey, path: Path | None) -> None:
        self._key, self._path = to_pem(key.public_key()), path
        self.pem = b""
        try:
            found = path.read_bytes() if path else b""
        except OSError:
            return
        self.pem = found if self._is_ours(found) else b""

    def store(self, pem: bytes) -> bool:
        """Store a certificate; return False for one that is not for this node's key, which is left out."""
        if not self._is_ours(pem):
            return False
        self.pem = pem
        try:
            if self._path:
                write_atomically(self._path, pem, mode=0o600)
        except OSError as error:
            _log.warning("the certificate of this node cannot be stored (%s)", error.strerror)
        return True

    def _is_ours(self, pem: bytes) -> bool:
        return len(pem) <= MOST_CERTIFICATE and certified_key(pem) == self._key


@dataclass(frozen=True)
class Server:
    """Address of the federation and identity of this node.

    Args:
        address: `host:port` of the door.
        ca: PEM of the certificate authority of the server; empty for an unencrypted connection.
        key: Private key of this node; None for a guest, which a server with authentication refuses.
        key_file: File of the private key, beside which the node's certificate is stored; None stores none.
        name: Public name of this node.
        token: One-time token of an invitation, which registers the key.
    """

    address: str
    ca: bytes = b""
    key: EllipticCurvePrivateKey | None = field(default=None, repr=False)
    key_file: Path | None = field(default=None, repr=False)
    name: str = ""
    token: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        """Refuse an address without a port, and a key without encryption."""
        try:
            check_address(self.address)
        except ValueError as error:
            raise ConfigError(f"server address '{self.address}' {error}") from None
        if self.key is not None and not self.ca:
            raise ConfigError("a node key needs an encrypted connection; give the server's CA with --ca")

    @cached_property
    def identity(self) -> EllipticCurvePrivateKey:
        """Private key by which the server knows this node: its own, or for a guest one that ends with it."""
        return self.key or generate_private_key(SECP384R1())

    @cached_property
    def certificate(self) -> NodeCertificate:
        """Certificate of this node for its server, whose authority is in the name of the file."""
        mark, file = hashlib.sha256(self.ca).hexdigest()[:16], self.key_file
        return NodeCertificate(self.identity, file and file.with_name(f"{file.name}.{mark}.pem"))

    @property
    def host(self) -> str:
        """Host name or address, without brackets."""
        return self.address.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """Port of the door."""
        return int(self.address.rpartition(":")[2])


def diagnose(server: Server) -> ConnectError:
    """Return the reason why no call succeeds, after a plain TCP connection and one with a TLS handshake."""
    if proxy := find_proxy(server.host):
        return ServerAwayError(
            f"no connection to {server.address} through the proxy of {printable(proxy)}; correct that variable, or name"
            f" {server.host} in no_proxy"
        )
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
                return ConnectError(f"{server.address} is not the port that clients join; use that of fedloom serve")
            return CertificateRefusedError(f"{server.address} does not answer")
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


def explain(error: grpc.RpcError, server: Server) -> FedloomError:
    """Return the error to raise for a broken stream.

    It is an error of `client.node.failures` if retrying can help, else a plain ConnectError.
    """
    match error.code():
        case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.DEADLINE_EXCEEDED:
            return diagnose(server)
        case grpc.StatusCode.UNIMPLEMENTED:
            return ConnectError(f"{server.address} has no door for clients of fedloom; check address and version")
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            return ServerAwayError(f"{server.address} sent or refused a frame that is too large")
        case status:
            return ServerAwayError(f"{server.address} returned gRPC status {status.name}")


def refusal(notice: Notice, server: Server) -> FedloomError:
    """Return the error to raise for a notice of the door."""
    text = printable(notice.text, 200)
    match notice.kind:
        case Notice.NOT_ADMITTED if server.ca and server.key is None:
            return ConnectError(f"{server.address} admits registered keys only; give this node's key with --key")
        case Notice.NOT_ADMITTED:
            return NotAdmittedError(
                f"{server.address} does not admit this node's key ({text}); register its public key at the server"
                " (fedloom nodes add)"
            )
        case Notice.CERTIFICATE_NEEDED:
            return CertificateRefusedError(f"{server.address} does not take this node's certificate: {text}")
        case Notice.REPLACED:
            return ConnectError(
                f"{server.address} has let in another client with this node's key ({text}); give each client a key of its"
                " own, or revoke a stolen one (fedloom nodes revoke)"
            )
        case Notice.RUN_OVER:
            return RunOverError(text)
        case Notice.TOO_LARGE:
            return RunOverError(f"{server.address} takes no message of this size: {text}")
        case Notice.VERSION:
            return ConnectError(f"{server.address} is of another version of fedloom ({text}); install the same one")
        case _:
            return ServerAwayError(f"{server.address} has ended the connection: {text}")
