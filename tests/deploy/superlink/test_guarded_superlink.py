"""The control port of a SuperLink answers its own user only; what it takes from Flower is tried before it serves."""

import asyncio
import hashlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from flwr.cli.build import build_fab_from_disk
from flwr.common.serde import fab_to_proto
from flwr.proto.control_pb2 import (
    ListRunsRequest,
    RegisterNodeRequest,
    StartRunRequest,
    StopRunRequest,
    StreamLogsRequest,
)
from flwr.proto.runtime_pb2 import AcquireTaskRequest
from flwr.server.superlink.linkstate.in_memory_linkstate import InMemoryLinkState
from flwr.supercore.fab import Fab
from flwr.superlink import extensions
from starlette.middleware import Middleware

from common.errors import RunError
from common.node_names import to_pem
from deploy.federation.processes import Processes
from deploy.keys.certificates import ensure_certificates
from deploy.keys.nodes import make_node_key
from deploy.superlink.control import Control
from deploy.superlink.guarded_superlink import REFUSAL, OwnUserOnly, guarded, replace, try_door
from deploy.superlink.superlink import SuperLinkSettings, free_port, is_healthy, start_superlink
from studies.harness.noop_federation import APP as NOOP

OTHER_USER = 65_534
REQUEST = """
import encodings.idna, http.client, json, os, ssl, sys
os.setuid(int(sys.argv[4]))
connection = http.client.HTTPSConnection("127.0.0.1", int(sys.argv[1]), timeout=20, context=ssl._create_unverified_context())
body = bytes.fromhex(sys.argv[5])
headers = {"Content-Type": "application/protobuf"} if body else {}
connection.request("POST" if body else "GET", sys.argv[2], body or None, {**headers, **json.loads(sys.argv[3])})
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


def ask(port: int, path: str, user: int, headers: dict[str, str] | None = None, body: bytes = b"") -> str:
    """Return status and text of a request by another program, as another user; it is a POST if it has a body."""
    program = [sys.executable, "-c", REQUEST, str(port), path, json.dumps(headers or {}), str(user), body.hex()]
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
    assert superlink.log.read_text().count("refused: control call of another user or machine (from 127.0.0.1:") == 1
    counted = ask(port, "/metrics", 0)
    assert counted.startswith("200")
    assert 'fedloom_refused_total{class="control call of another user or machine"} 10' in counted
    assert ask(port, "/metrics", OTHER_USER).startswith("403")


@pytest.mark.system
@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become another user")
def test_calls_that_the_owner_may_make_are_refused_to_another_user(
    superlink: SuperLinkSettings, tmp_path: Path
) -> None:
    assert superlink.certificates is not None
    control, port = Control(superlink.control_address, superlink.certificates.ca), superlink.control_port
    run = control.submit(NOOP, {"nodes": 9})
    bundle = build_fab_from_disk(NOOP)
    fab = fab_to_proto(Fab(hashlib.sha256(bundle).hexdigest(), bundle, {}))
    calls: dict[str, Any] = {
        "control/start-run": StartRunRequest(fab=fab),
        "control/list-runs": ListRunsRequest(run_id=run),
        "control/stream-logs": StreamLogsRequest(run_id=run),
        "control/register-node": RegisterNodeRequest(public_key=to_pem(make_node_key(tmp_path / "node.key"))),
        "control/stop-run": StopRunRequest(run_id=run),
        "runtime/acquire-task": AcquireTaskRequest(supported_task_types=["flwr-serverapp"]),
    }
    answers = {
        path: ask(port, f"/v1/{path}", OTHER_USER, body=call.SerializeToString()) for path, call in calls.items()
    }
    assert answers == dict.fromkeys(calls, f"403 {REFUSAL}\n")
    assert not control.status(run).startswith("finished")
    for path in ("control/list-runs", "control/stop-run"):
        assert ask(port, f"/v1/{path}", 0, body=calls[path].SerializeToString()).startswith("200")
    assert control.status(run) == "finished:stopped"


@pytest.mark.system
def test_flower_s_own_command_still_answers_the_owner(superlink: SuperLinkSettings, tmp_path: Path) -> None:
    assert is_healthy(superlink)
    assert superlink.certificates is not None
    control = Control(superlink.control_address, superlink.certificates.ca)
    assert not control.unregister(make_node_key(tmp_path / "node.key"))


def test_a_call_that_flower_no_longer_serves_is_named_before_a_superlink_serves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    try_door()
    monkeypatch.setattr(InMemoryLinkState, "get_task_by_token", None)
    with pytest.raises(RunError, match="fails at run_of of the door"):
        try_door()


def test_a_part_of_flower_that_is_gone_is_named() -> None:
    with pytest.raises(RunError, match=r"has no flwr.superlink.extensions.get_guards"):
        replace(extensions, "get_guards", None)


def test_a_superlink_without_its_guard_does_not_serve() -> None:
    async def start(app: Any) -> None:
        async with guarded((guard,), app):
            pass

    app, guard = SimpleNamespace(user_middleware=[]), Middleware(OwnUserOnly)
    with pytest.raises(RunError, match="takes no guard"):
        asyncio.run(start(app))
    app.user_middleware.append(guard)
    asyncio.run(start(app))


def test_flower_s_nodes_reach_the_fleet_api_alone_and_send_so_many_bytes() -> None:
    def ask_as_stranger(path: str, length: str | None, most: int) -> int:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            status.append(200)

        async def send(event: Any) -> None:
            status.extend([event["status"]] if "status" in event else [])

        async def receive() -> Any:
            return {"type": "http.request"}

        status = list[int]()
        headers = [] if length is None else [(b"content-length", length.encode())]
        scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "client": None, "server": None}
        asyncio.run(OwnUserOnly(app, most)(scope, receive, send))
        return status[0]

    assert ask_as_stranger("/v1/fleet/pull-messages", "9", most=9) == 200
    assert [ask_as_stranger("/v1/fleet/pull-messages", length, 9) for length in ("10", "-1", "1e0", None)] == [413] * 4
    assert ask_as_stranger("/v1/fleet/pull-messages", "9", most=0) == 403
    others = "/v1/fleet", "/v1/fleet/", "/v1/fleet/../control/start-run", "/v1/control/start-run", "//v1/fleet/get-fab"
    assert [ask_as_stranger(path, "9", 9) for path in others] == [403] * len(others)
