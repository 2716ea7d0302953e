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
from deploy.guarded_superlink import REFUSAL
from deploy.keys import make_node_key
from deploy.ports import free_port
from deploy.processes import Processes
from deploy.superlink import SuperLinkSettings, is_healthy, start_superlink

OTHER_USER = 65_534
REQUEST = """
import encodings.idna, http.client, json, os, ssl, sys
os.setuid(int(sys.argv[4]))
connection = http.client.HTTPSConnection("127.0.0.1", int(sys.argv[1]), timeout=20, context=ssl._create_unverified_context())
connection.request("GET", sys.argv[2], headers=json.loads(sys.argv[3]))
answer = connection.getresponse()
print(answer.status, answer.read().decode(errors="replace"))
"""


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
