"""The owner of the other end of a connection."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from deploy.superlink import guarded_superlink as socket_owner
from deploy.superlink.guarded_superlink import TABLES, Endpoint, ask_kernel, find_user, search_tables

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
Find = Callable[[Endpoint, Endpoint], int | None]


class Connection(NamedTuple):
    """Connection of this process: the client's socket, and both ends as the server names them."""

    client: socket.socket
    peer: Endpoint
    own: Endpoint


def in_own_order(endpoint: str) -> str:
    """Return an endpoint of a little-endian machine in this machine's byte order."""
    address, _, port = endpoint.partition(":")
    words = np.frombuffer(bytes.fromhex(address), "<u4").astype("=u4")
    return f"{words.tobytes().hex().upper()}:{port}"


def line(local: str, remote: str, state: str, user: int, inode: int) -> str:
    """Return a line of a table, from endpoints as little-endian machines write them."""
    local, remote = map(in_own_order, (local, remote))
    return f"   0: {local} {remote} {state} 00000000:00000000 00:00000000 00000000  {user}        0 {inode} 1 0000\n"


@pytest.mark.parametrize(
    ("state", "user", "inode", "found"),
    [("01", 1000, 7, 1000), ("01", 0, 7, 0), ("06", 0, 0, None), ("01", 0, 0, None), ("05", 0, 7, None)],
    ids=["open", "root", "time-wait", "orphan", "half-closed"],
)
def test_the_owner_of_an_open_connection_is_found(
    state: str, user: int, inode: int, found: int | None, tmp_path: Path
) -> None:
    table = tmp_path / "tcp"
    table.write_text(HEAD + line("0100007F:BB4A", "0100007F:1F40", state, user, inode))
    assert search_tables(("127.0.0.1", 0xBB4A), ("127.0.0.1", 8000), [tmp_path / "missing", table]) == found
    assert search_tables(("127.0.0.1", 0xBB4B), ("127.0.0.1", 8000), [table]) is None
    table.write_text(HEAD + line(f"{24 * '0'}01000000:BB4A", f"{24 * '0'}01000000:1F40", state, user, inode))
    assert search_tables(("::1", 0xBB4A), ("::1", 8000), [table]) == found
    mapped = "0000000000000000FFFF00000100007F"
    table.write_text(HEAD + line(f"{mapped}:BB4A", f"{mapped}:1F40", state, user, inode))
    assert search_tables(("::ffff:127.0.0.1", 0xBB4A), ("127.0.0.1", 8000), [table]) == found


@pytest.fixture(params=[("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("::", "127.0.0.1")], ids=["IPv4", "IPv6", "both"])
def ends(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """Both ends of a connection of this process, as its server names them."""
    host, target = request.param
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with (
        socket.create_server((host, 0), family=family, dualstack_ipv6=host == "::") as server,
        socket.create_connection((target, server.getsockname()[1])) as client,
        server.accept()[0] as served,
    ):
        yield Connection(client, served.getpeername()[:2], served.getsockname()[:2])


@pytest.mark.parametrize("find", [ask_kernel, lambda *ends: search_tables(*ends, TABLES)], ids=["question", "tables"])
def test_the_owner_of_a_connection_of_this_process_is_found(find: Find, ends: Connection) -> None:
    assert find(ends.peer, ends.own) == os.getuid()


@pytest.mark.parametrize("find", [ask_kernel, lambda *ends: search_tables(*ends, TABLES)], ids=["question", "tables"])
def test_a_connection_that_its_process_has_closed_has_no_owner(find: Find, ends: Connection) -> None:
    ends.client.close()
    with suppress(OSError):
        assert find(ends.peer, ends.own) is None


def test_a_listening_port_is_no_end_of_a_connection() -> None:
    """The kernel answers with a listener on the port where it finds no connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert find_user(server.getsockname(), ("127.0.0.1", 9)) is None


def test_the_tables_are_searched_where_the_kernel_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, ends: Connection
) -> None:
    def refuse(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(socket_owner, "ask_kernel", refuse)
    assert find_user(ends.peer, ends.own) == os.getuid()
    assert find_user(ends.peer, ends.own, []) is None
