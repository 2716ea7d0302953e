"""Connections without a call: of strangers, whose TLS handshake fails or whose call gRPC refuses.

gRPC names none of them, and has no limit by address. It asks for the server's certificates at each handshake; Linux then lists
the connections of a port. Those of an address beyond its limit are closed.
"""

import asyncio
import os
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import grpc

from common.refusals import Refusals

TABLES = Path("/proc/net/tcp"), Path("/proc/net/tcp6")
"""Connections of this machine, as Linux lists them."""

FILES = Path("/proc/self/fd")
"""Open files and sockets of this process."""

ESTABLISHED, LISTEN = "01", "0A"
RESET = struct.pack("ii", 1, 0)
"""Linger that ends a connection at its close; Linux would list it for a minute more."""

LOOK_SECONDS = 1.0  # between two looks for missing calls
REST = 20  # a look takes milliseconds of processor time, and the next comes after so many times as long
GRACE_SECONDS = 3.0  # in which a client opens its call, also on a busy machine


class Strangers:
    """Log of the connections to a port on which no call comes, and their limit.

    Args:
        refusals: Counter of refused clients.
        most: Connections of an address that are held without a call. Once so many have waited for `GRACE_SECONDS`, further
            ones are closed.
    """

    def __init__(self, refusals: Refusals, most: int) -> None:
        self._refusals, self._most, self.port = refusals, most, 0
        self._called, self._lock = set[str](), threading.Lock()
        self._silent: dict[str, float] = {}
        """Connection that may still open its call -> time since which it is seen."""
        self._counted: dict[str, None] = {}
        """Connections that were counted, in the sequence in which they came."""
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
        self._look()
        renewed, self._renewed = self._renewed, None
        return renewed

    def call(self, peer: str) -> None:
        """Note a call of a peer, in gRPC's form."""
        host, _, port = unquote(peer.partition(":")[2]).rpartition(":")
        if host:  # a socket of another kind has none
            self._called.add(f"{plain_host(host)}:{port}")

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
            self._look()

    def _look(self) -> None:
        """Compare connections with calls, unless the last look was a moment ago or is not over."""
        now = time.monotonic()
        if now < self._next_look or not self._lock.acquire(blocking=False):
            return
        try:
            spent = time.thread_time()
            before = self._called.copy()  # a call may come while the tables are read
            found = connected_peers(self.port, TABLES)
            self._called -= before - found.keys()
            self._compare({peer: is_open for peer, is_open in found.items() if peer not in self._called}, now)
            self._next_look = now + REST * (time.thread_time() - spent)
        finally:
            self._lock.release()

    def _compare(self, found: dict[str, bool], now: float) -> None:
        """Count the connections whose call is missing, and close those of an address beyond the limit.

        Args:
            found: Connection without a call, now -> True if it is open.
            now: Time of the look.
        """
        self._counted = {peer: None for peer in self._counted if peer in found}
        waiting = {peer: since for peer, since in self._silent.items() if peer not in self._called}
        waiting |= {peer: now for peer in found if peer not in waiting and peer not in self._counted}
        self._silent = {peer: since for peer, since in waiting.items() if now < since + GRACE_SECONDS}
        due = [peer for peer in waiting if peer not in self._silent]
        held = Counter[str]()
        excess = list[str]()
        for peer in filter(found.get, (*self._counted, *due)):
            held[_host(peer)] += 1
            excess += [peer] if held[_host(peer)] > self._most else []
        early = [peer for peer in filter(found.get, self._silent) if held[_host(peer)] >= self._most]
        for peer in (*due, *early):
            self._silent.pop(peer, None)
            detail = "the TLS handshake failed or did not end, or the call was compressed"
            self._refusals.count("at the door, no call", peer, detail=detail)
            self._counted[peer] = None
        if excess or early:
            close_connections(self.port, {*excess, *early})


def connected_peers(port: int, tables: Iterable[Path]) -> dict[str, bool]:
    """Return the other ends of connections to a local port, as `host:port` -> True for open ones.

    It is empty without tables.
    """
    rows = (fields for fields in connections(tables) if fields[1].endswith(f":{port:04X}") and fields[3] != LISTEN)
    return {listed_end(fields[2]): fields[3] == ESTABLISHED for fields in rows}


def connections(tables: Iterable[Path]) -> Iterator[list[str]]:
    """Yield the fields of each connection in tables like `/proc/net/tcp`; missing ones are empty."""
    for table in tables:
        yield from map(str.split, table.read_text("ascii").splitlines()[1:] if table.exists() else ())


def listed_end(text: str) -> str:
    """Return an end of a connection in Linux' tables as `host:port`."""
    words, _, number = text.partition(":")
    return f"{_listed_host(words)}:{int(number, 16)}"


@lru_cache(4096)
def _listed_host(words: str) -> str:
    """Return an address from its form in Linux' tables: words of 32 bits in this machine's byte order."""
    packed = b"".join(int(words[k : k + 8], 16).to_bytes(4, sys.byteorder) for k in range(0, len(words), 8))
    return plain_host(str(ip_address(packed)))


def close_connections(port: int, peers: Container[str]) -> None:
    """Close connections of this process between a local port and these other ends, under gRPC."""
    for name in os.listdir(FILES):
        with suppress(OSError), _copied(int(name)) as one:  # closed by now, or no connection
            if one.family in (socket.AF_INET, socket.AF_INET6) and one.getsockname()[1] == port:
                host, number = one.getpeername()[:2]
                if f"{plain_host(host)}:{number}" in peers:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    one.shutdown(socket.SHUT_RD)


def _copied(number: int) -> socket.socket:
    """Return a socket of this process by another number, which stays this socket's.

    Raises:
        OSError: It is no socket.
    """
    copy = os.dup(number)
    try:
        return socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise


def _host(peer: str) -> str:
    return peer.rpartition(":")[0]


@lru_cache(4096)
def plain_host(host: str) -> str:
    """Return an address in its one form; an IPv4 address in IPv6 form is IPv4."""
    address = ip_address(host.strip("[]").partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
