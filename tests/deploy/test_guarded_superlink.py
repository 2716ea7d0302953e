"""The control port of a SuperLink answers its own user only."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.certificates import ensure_certificates
from deploy.control import Control
from deploy.guarded_superlink import REFUSAL, find_user
from deploy.keys import make_node_key
from deploy.ports import free_port
from deploy.processes import Processes
from deploy.superlink import SuperLinkSettings, is_healthy, start_superlink

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
OTHER_USER = 65_534
REQUEST = """
import encodings.idna, http.client, json, os, ssl, sys
os.setuid(int(sys.argv[4]))
connection = http.client.HTTPSConnection("127.0.0.1", int(sys.argv[1]), timeout=20, context=ssl._create_unverified_context())
connection.request("GET", sys.argv[2], headers=json.loads(sys.argv[3]))
answer = connection.getresponse()
print(answer.status, answer.read().decode(errors="replace"))
"""


def line(local: str, remote: str, state: str, user: int, inode: int) -> str:
    return f"   0: {local} {remote} {state} 00000000:00000000 00:00000000 00000000  {user}        0 {inode} 1 0000\n"


@pytest.mark.parametrize(
    ("state", "user", "inode", "found"),
    [("01", 1000, 7, 1000), ("01", 0, 7, 0), ("06", 0, 0, None), ("01", 0, 0, None), ("05", 0, 7, None)],
    ids=["open", "root", "time-wait", "orphan", "half-closed"],
)
@pytest.mark.skipif(sys.byteorder == "big", reason="addresses are written for little-endian machines")
def test_the_owner_of_an_open_connection_is_found(
    state: str, user: int, inode: int, found: int | None, tmp_path: Path
) -> None:
    table = tmp_path / "tcp"
    table.write_text(HEAD + line("0100007F:BB4A", "0100007F:1F40", state, user, inode))
    assert find_user(("127.0.0.1", 0xBB4A), ("127.0.0.1", 8000), [tmp_path / "missing", table]) == found
    assert find_user(("127.0.0.1", 0xBB4B), ("127.0.0.1", 8000), [table]) is None
    table.write_text(HEAD + line(f"{24 * '0'}01000000:BB4A", f"{24 * '0'}01000000:1F40", state, user, inode))
    assert find_user(("::1", 0xBB4A), ("::1", 8000), [table]) == found
    mapped = "0000000000000000FFFF00000100007F"
    table.write_text(HEAD + line(f"{mapped}:BB4A", f"{mapped}:1F40", state, user, inode))
    assert find_user(("::ffff:127.0.0.1", 0xBB4A), ("127.0.0.1", 8000), [table]) == found


def test_the_owner_of_a_connection_of_this_process_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as peer:
            ends = peer.getsockname(), server.getsockname()
            assert find_user(*ends, [Path("/proc/net/tcp")]) == os.getuid()
        assert find_user(*ends, [Path("/proc/net/tcp")]) is None


@pytest.fixture(scope="module")
def superlink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SuperLinkSettings]:
    home = tmp_path_factory.mktemp("server")
    settings = SuperLinkSettings(home, ensure_certificates(home), port=free_port(), control_port=free_port())
    with Processes() as processes:
        start_superlink(processes, settings)
        yield settings


def ask(port: int, path: str, user: int, headers: dict[str, str] | None = None) -> str:
    """Return status and text of a request by another program, as another user."""
    program = [sys.executable, "-c", REQUEST, str(port), path, json.dumps(headers or {}), str(user)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    return done.stdout or done.stderr


@pytest.mark.system
@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become another user")
def test_another_user_can_neither_submit_nor_list_nor_stop_nor_read(superlink: SuperLinkSettings) -> None:
    port = superlink.control_port
    assert ask(port, "/health", 0).startswith("200")
    with socket.create_connection(("127.0.0.1", port)) as own:
        spoofed = {"X-Forwarded-For": f"127.0.0.1:{own.getsockname()[1]}"}
        for path in ("/health", "/docs", "/openapi.json", "/control/list-runs", "/runtime/pull-pending-tasks"):
            for headers in ({}, spoofed):
                assert ask(port, path, OTHER_USER, headers) == f"403 {REFUSAL}\n"
    assert "refused GET /health of another user or machine" in superlink.log.read_text()


@pytest.mark.system
def test_flower_s_own_command_still_answers_the_owner(superlink: SuperLinkSettings, tmp_path: Path) -> None:
    assert is_healthy(superlink)
    assert superlink.certificates is not None
    control = Control(superlink.control_address, superlink.certificates.ca)
    assert not control.unregister(make_node_key(tmp_path / "node.key"))
