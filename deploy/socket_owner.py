"""User at the other end of a TCP connection within this machine, as Linux reports it."""

import os
import socket
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

TABLES = Path("/proc/net/tcp"), Path("/proc/net/tcp6")
"""Connections of this machine, as Linux lists them."""

Endpoint = tuple[str, int]
"""Address and port."""

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, NLMSG_ERROR = 4, 20, 1, 2
"""Constants of sock_diag(7) and netlink(7)."""

ESTABLISHED = 1
ANSWER_BYTES, ANSWER_SECONDS = 8192, 1.0
HEADER, REQUEST, ANSWER = struct.Struct("=IHHII"), struct.Struct("=BBBxI"), struct.Struct("=xB2x48x12xII")
"""Message header; the request up to the connection; state, user and inode in the answer."""


def find_user(peer: Endpoint, own: Endpoint, tables: Iterable[Path] = TABLES) -> int | None:
    """Return the user id of the process at the other end of a connection; None if there is none here.

    A socket that its process has closed has no inode, and its user would be reported as 0. Reading a table takes Linux
    milliseconds, so the tables are searched only if a question for the one connection has no answer.

    Args:
        peer: The other end.
        own: This end.
        tables: Files in the form of `/proc/net/tcp`.
    """
    try:
        return ask_kernel(peer, own)
    except (AttributeError, OSError):  # no netlink, or no such connection
        return search_tables(peer, own, tables)


def ask_kernel(peer: Endpoint, own: Endpoint) -> int | None:
    """Ask for the user id of an open connection's other end by sock_diag(7); None if it is not open.

    Raises:
        OSError: The kernel knows no such connection, or does not answer such questions.
    """
    family, address = _pack(peer[0])
    ends = struct.pack("!HH", peer[1], own[1]) + address.ljust(16, b"\0") + _pack(own[0])[1].ljust(16, b"\0")
    any_device_and_cookie = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
    question = REQUEST.pack(family, socket.IPPROTO_TCP, 0, 1 << ESTABLISHED) + ends + any_device_and_cookie
    header = HEADER.pack(HEADER.size + len(question), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(ANSWER_SECONDS)
        kernel.send(header + question)
        answer = kernel.recv(ANSWER_BYTES)
    if HEADER.unpack_from(answer)[1] == NLMSG_ERROR:
        code = -struct.unpack_from("=i", answer, HEADER.size)[0]
        raise OSError(code, os.strerror(code))
    state, user, inode = ANSWER.unpack_from(answer, HEADER.size)
    return int(user) if state == ESTABLISHED and inode else None


def search_tables(peer: Endpoint, own: Endpoint, tables: Iterable[Path]) -> int | None:
    """Search tables for the user id of an open connection's other end; None if it is in none."""
    ends = _encode(*peer), _encode(*own)
    for table in tables:
        for line in table.read_text("ascii").splitlines()[1:] if table.exists() else ():
            fields = line.split()
            local, remote, state, user, inode = fields[1], fields[2], fields[3], fields[7], fields[9]
            if int(state, 16) == ESTABLISHED and inode != "0" and (_plain(local), _plain(remote)) == ends:
                return int(user)
    return None


def _pack(host: str) -> tuple[int, bytes]:
    """Return the family and the bytes of an address; IPv4 addresses in IPv6 form are IPv4."""
    address = host.partition("%")[0].removeprefix("::ffff:")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return family, socket.inet_pton(family, address)


def _encode(host: str, port: int) -> str:
    """Return an endpoint as in `/proc/net/tcp`: words of 32 bits in this machine's byte order."""
    return _words(_pack(host)[1]) + f":{port:04X}"


def _words(packed: bytes) -> str:
    starts = range(0, len(packed), 4)
    return "".join(f"{int.from_bytes(packed[start : start + 4], sys.byteorder):08X}" for start in starts)


def _plain(endpoint: str) -> str:
    """Return an endpoint without the prefix of an IPv4 address in the table of IPv6."""
    return endpoint.removeprefix(_words(10 * b"\0" + b"\xff\xff"))
