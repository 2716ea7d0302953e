"""What a failed call to the server means, and what the person at the keyboard can do about it.

gRPC says only "unavailable" for a server that is absent, one with an unknown certificate and one that speaks something
else. So an unreachable server is looked at once more, with a plain TLS handshake that tells the cause.
"""

import json
import socket
import ssl
from dataclasses import dataclass, field

import grpc
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from common.errors import ConnectError, FedloomError

PROBE_TIMEOUT = 3.0  # seconds
_EXPIRED, _NOT_YET_VALID, _WRONG_NAME, _WRONG_IP = 10, 9, 62, 64  # X509_V_ERR_* of OpenSSL
_ACTIVATION_FAILED, _KEYS_ARE_REQUIRED = 2004, 2001  # Flower's ApiErrorCode


class ServerAwayError(ConnectError):
    """Nobody answers: the server is not there, or not there yet."""


class NotAdmittedError(ConnectError):
    """The server does not know this node's key (yet), or believes that the key's last session still goes on."""


class RunOverError(FedloomError):
    """The run that a message belongs to is no longer running."""


@dataclass(frozen=True)
class Server:
    """Where the federation is, and how this node proves who it is.

    Args:
        address: `host:port` of the Fleet API.
        ca: PEM of the certificate authority that vouches for the server; empty means no encryption.
        key: This node's private key; without one the node is a guest, which a server with authentication refuses.
    """

    address: str
    ca: bytes = b""
    key: EllipticCurvePrivateKey | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse an address without a port, and a key that would be shown over an unprotected line."""
        host, _, port = self.address.rpartition(":")
        if not host or not port.isdecimal():
            raise ConnectError(f"server address '{self.address}': expected HOST:PORT, for instance localhost:9092")
        if self.key is not None and not self.ca:
            raise ConnectError("a node key proves nothing over an unencrypted line: give the server's CA with --ca")

    @property
    def host(self) -> str:
        """The host name or address, without brackets."""
        return self.address.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port."""
        return int(self.address.rpartition(":")[2])


def explain(error: grpc.RpcError, server: Server) -> FedloomError:
    """The error to raise for a failed call: one of this module's if it may pass, a plain ConnectError if not."""
    status, details = error.code(), error.details() or ""
    match status:
        case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.DEADLINE_EXCEEDED:
            return diagnose(server)
        case grpc.StatusCode.PERMISSION_DENIED:
            return RunOverError("the run is over")
        case grpc.StatusCode.UNAUTHENTICATED if "timestamp" in details:
            return ConnectError(f"{server.address}: this machine's clock or the server's is wrong: set both by NTP")
        case grpc.StatusCode.UNAUTHENTICATED:
            return NotAdmittedError(f"{server.address} no longer knows this node")
        case grpc.StatusCode.FAILED_PRECONDITION:
            return _refused(server, details)
        case grpc.StatusCode.UNIMPLEMENTED:
            return ConnectError(f"{server.address} is not a Fleet API of Flower 1.39: check address and version")
        case _:
            return ServerAwayError(f"{server.address} answers {status.name}")


def diagnose(server: Server) -> ConnectError:
    """Say why no call gets through, after one plain TCP connection and TLS handshake."""
    try:
        with socket.create_connection((server.host, server.port), timeout=PROBE_TIMEOUT) as line:
            return _handshake(server, line) if server.ca else _eavesdrop(server, line)
    except OSError as error:  # name not found, refused, no route, timeout
        return ServerAwayError(f"no server at {server.address} ({error.strerror or error}): is it running?")


def _handshake(server: Server, line: socket.socket) -> ConnectError:
    try:
        context = ssl.create_default_context(cadata=server.ca.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError, ValueError):
        return ConnectError("the CA file holds no certificate: give the PEM file that the server's owner made (ca.pem)")
    context.set_alpn_protocols(["h2"])
    try:
        with context.wrap_socket(line, server_hostname=server.host) as tls:
            if tls.selected_alpn_protocol() != "h2":
                return ConnectError(f"{server.address} is not a Fleet API: give the port that clients join")
            return ServerAwayError(f"{server.address} does not answer")
    except ssl.SSLCertVerificationError as error:
        return ConnectError(_certificate_fault(server, error))
    except ssl.SSLError as error:
        if error.reason == "WRONG_VERSION_NUMBER":
            return ConnectError(
                f"{server.address} does not speak TLS: give it certificates, or, for an experiment, join with --insecure and"
                " neither --ca nor --key"
            )
        return ServerAwayError(f"{server.address}: TLS handshake failed ({error.reason})")


def _certificate_fault(server: Server, error: ssl.SSLCertVerificationError) -> str:
    match error.verify_code:
        case code if code == _EXPIRED:
            return f"the certificate of {server.address} has expired: the server's owner must make a new one"
        case code if code == _NOT_YET_VALID:
            return f"the certificate of {server.address} is not valid yet: check the clock of this machine"
        case code if code in (_WRONG_NAME, _WRONG_IP):
            return (
                f"the certificate of {server.address} is not made for '{server.host}': join under a name it holds,"
                " or have the server's owner make one for this name"
            )
        case _:
            return (
                f"the certificate of {server.address} is not signed by the given CA (wrong CA, or another server):"
                " ask the server's owner for the current ca.pem"
            )


def _eavesdrop(server: Server, line: socket.socket) -> ConnectError:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # only asks whether TLS is spoken; sends nothing
    try:
        context.wrap_socket(line, server_hostname=server.host).close()
    except OSError:
        return ServerAwayError(f"{server.address} does not answer")
    return ConnectError(f"{server.address} demands TLS: give the server's CA with --ca")


def _refused(server: Server, details: str) -> ConnectError:
    try:
        payload = json.loads(details)
        code, text = payload.get("code"), payload.get("detail", "")
    except (ValueError, AttributeError):
        code, text = None, details
    if code == _ACTIVATION_FAILED:
        return NotAdmittedError(
            f"{server.address} does not admit this node's key: register its public key at the server"
            " (or end the other client that uses the same key)"
        )
    if code == _KEYS_ARE_REQUIRED:
        return ConnectError(f"{server.address} admits only registered keys: give this node's with --key")
    return ConnectError(f"{server.address} refuses this node: {text}")
