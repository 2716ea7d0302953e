"""Connections without a call: of strangers, whose TLS handshake fails or whose call gRPC refuses.

gRPC names none of them. It asks for the server's certificates at each handshake; Linux then lists the connections of a port.
"""

import asyncio
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import grpc

from common.refusals import Refusals

TABLES = Path("/proc/net/tcp"), Path("/proc/net/tcp6")
"""Connections of this machine, as Linux lists them."""

LISTEN = "0A"
LOOK_SECONDS = 1.0  # between two looks for missing calls
REST = 20  # a look at the tables takes milliseconds, and the next comes after so many times as long
GRACE_SECONDS = 3.0  # in which a client opens its call, also on a busy machine
REMEMBERED = 4096


class Strangers:
    """Log of the connections to a port on which no call comes.

    Args:
        refusals: Counter of refused clients.
    """

    def __init__(self, refusals: Refusals) -> None:
        self._refusals, self.port = refusals, 0
        self._called = deque[str](maxlen=REMEMBERED)
        self._silent: dict[str, float] = {}
        self._next_look = 0.0
        self._renewed: object = None

    def credentials(self, pair: tuple[bytes, bytes], authority: bytes) -> grpc.ServerCredentials:
        """Return the credentials of a server with this key and certificate; its handshakes are noted."""
        files = grpc.ssl_server_certificate_configuration([pair], authority)
        return grpc.dynamic_ssl_server_credentials(files, self.begin, require_client_authentication=True)

    def renew(self, pair: tuple[bytes, bytes], authority: bytes) -> None:
        """Use another key and certificate from the next handshake on."""
        self._renewed = grpc.ssl_server_certificate_configuration([pair], authority)

    def begin(self) -> object:
        """Note that a handshake begins; return new credentials, None for those before."""
        now = time.monotonic()
        if now >= self._next_look:
            for peer in connected_peers(self.port, TABLES) - {*self._called}:
                self._silent.setdefault(peer, now)
            self._next_look = now + REST * (time.monotonic() - now)
        renewed, self._renewed = self._renewed, None
        return renewed

    def call(self, peer: str) -> None:
        """Note a call of a peer, in gRPC's form."""
        host, _, port = unquote(peer.partition(":")[2]).rpartition(":")
        if host:  # a socket of another kind has none
            self._called.append(_text(host.strip("[]"), int(port)))

    def noting(self, handler: Callable[[Any, Any], Awaitable[Any]]) -> Callable[[Any, Any], Awaitable[Any]]:
        """Return a handler of calls that notes each caller."""

        async def handle(request: Any, context: Any) -> Any:
            self.call(context.peer())
            return await handler(request, context)

        return handle

    async def watch(self) -> None:
        """Count the connections whose call is missing, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self._refusals.report()
            due = [peer for peer, since in self._silent.items() if time.monotonic() >= since + GRACE_SECONDS]
            for peer in due:
                del self._silent[peer]
                if peer not in self._called:
                    detail = "the TLS handshake failed or did not end, or the call was compressed"
                    self._refusals.count("at the door, no call", peer, detail=detail)
                    self._called.append(peer)  # counted once


def connected_peers(port: int, tables: Iterable[Path]) -> set[str]:
    """Return the other ends of the connections to a local port, as `host:port`; empty without tables."""
    found, local = set[str](), f":{port:04X}"
    for table in tables:
        for line in table.read_text("ascii").splitlines()[1:] if table.exists() else ():
            fields = line.split(maxsplit=4)
            if fields[1].endswith(local) and fields[3] != LISTEN:
                words, _, number = fields[2].partition(":")
                starts = range(0, len(words), 8)
                packed = b"".join(int(words[k : k + 8], 16).to_bytes(4, sys.byteorder) for k in starts)
                found.add(_text(str(ip_address(packed)), int(number, 16)))
    return found


def _text(host: str, port: int) -> str:
    """Return an end of a connection; an IPv4 address in IPv6 form is IPv4."""
    address = ip_address(host.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return f"{mapped or address}:{port}"
