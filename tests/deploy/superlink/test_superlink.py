"""Start, health, ports and control of a SuperLink."""

import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from unittest.mock import patch

import pytest

from common.errors import ConfigError, RunError
from deploy.federation.fork_server import flower_environment
from deploy.federation.processes import Processes
from deploy.keys.nodes import make_node_key, public_path
from deploy.superlink import superlink
from deploy.superlink.control import Control
from deploy.superlink.superlink import (
    PORTS,
    SuperLinkSettings,
    free_port,
    is_healthy,
    require_free_port,
    start_superlink,
)


@pytest.fixture
def settings(tmp_path: Path) -> SuperLinkSettings:
    return SuperLinkSettings(tmp_path, port=free_port(), control_port=free_port())


@pytest.mark.parametrize(("field", "option"), [("port", "--port"), ("control_port", "--control-port")])
def test_a_taken_port_is_named_before_anything_starts(tmp_path: Path, field: str, option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ports = {"port": free_port(), "control_port": free_port(), field: listener.getsockname()[1]}
        with Processes() as processes, pytest.raises(ConfigError, match=rf"port {ports[field]} .* {option}"):
            start_superlink(processes, SuperLinkSettings(tmp_path / "home", **ports))
    assert not (tmp_path / "home").exists()


def test_a_superlink_that_ends_is_quoted(settings: SuperLinkSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(superlink, "_command", lambda settings: ["sh", "-c", "echo out of memory; exit 4"])
    with Processes() as processes, pytest.raises(RunError, match=r"exit code 4(.|\n)*out of memory"):
        start_superlink(processes, settings)


def test_wildcards_are_reached_by_loopback(tmp_path: Path) -> None:
    settings = SuperLinkSettings(tmp_path, host="0.0.0.0", port=1, control_host="::", control_port=2)
    assert (settings.address, settings.control_address) == ("127.0.0.1:1", "[::1]:2")


def test_flower_sends_no_telemetry_and_installs_nothing() -> None:
    environment = flower_environment({"FEDLOOM_RUNS": "/runs"})
    assert environment["FLWR_TELEMETRY_ENABLED"] == "0"
    assert environment["FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION"] == "1"
    assert environment["FEDLOOM_RUNS"] == "/runs"
    assert environment["PATH"].endswith(os.environ["PATH"])


def test_state_is_in_memory_unless_a_database_is_wanted(settings: SuperLinkSettings) -> None:
    assert "--database" not in superlink._command(settings)
    command = superlink._command(replace(settings, database=True))
    assert command[command.index("--database") + 1] == settings.folder / "superlink.sqlite"


@pytest.fixture
def web(settings: SuperLinkSettings) -> Iterator[HTTPServer]:
    class Healthy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/health" else 404)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", settings.control_port), Healthy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_health_is_queried_over_http(settings: SuperLinkSettings, web: HTTPServer) -> None:
    assert is_healthy(settings)


def test_an_absent_superlink_is_not_healthy(settings: SuperLinkSettings) -> None:
    assert not is_healthy(settings)


@pytest.mark.system
def test_a_superlink_is_controlled_by_its_command_line(settings: SuperLinkSettings, tmp_path: Path) -> None:
    """The environment of the SuperLink also reaches the ServerApp."""
    app = _app(tmp_path / "app")
    keys = [tmp_path / f"{i}.key" for i in range(2)]
    for key in keys:
        make_node_key(key)
    settings = SuperLinkSettings(
        settings.folder, port=settings.port, control_port=settings.control_port, environment={"FEDLOOM_RUNS": "here"}
    )
    with Processes() as processes:
        start_superlink(processes, settings)
        control = Control(settings.control_address, None)
        first = [control.register(public_path(key)) for key in keys]
        assert len(set(first)) == 2
        assert None not in first
        assert control.register(public_path(keys[0])) is None

        run = control.submit(app, {"out": str(tmp_path / "out")})
        while (status := control.status(run)) in ("pending", "starting", "running"):
            pass
        assert status == "finished:completed"
        assert (tmp_path / "out").read_text() == "here"
        with pytest.raises(RunError, match="Run ID not found"):
            control.stop(5)


def _app(folder: Path) -> Path:
    folder.mkdir()
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "probe"\nversion = "1.0.0"\ndescription = ""\nlicense = "Apache-2.0"\n'
        '[tool.flwr.app]\npublisher = "fedloom"\n'
        '[tool.flwr.app.components]\nserverapp = "probe:server"\nclientapp = "probe:client"\n'
        '[tool.flwr.app.config]\nout = ""\n'
    )
    (folder / "probe.py").write_text(
        "import os, pathlib\n"
        "from flwr.clientapp import ClientApp\n"
        "from flwr.serverapp import ServerApp\n"
        "client = ClientApp()\nserver = ServerApp()\n"
        "@server.main()\n"
        "def main(grid, context):\n"
        "    pathlib.Path(context.run_config['out']).write_text(os.environ['FEDLOOM_RUNS'])\n"
    )
    return folder


def test_a_free_port_is_none_that_systems_give_to_outgoing_connections() -> None:
    found = {free_port() for _ in range(50)}
    assert len(found) > 40
    assert all(port in PORTS for port in found)
    with (
        socket.create_server(("127.0.0.1", free_port())) as server,
        socket.create_connection(server.getsockname()) as out,
    ):
        assert out.getsockname()[1] not in PORTS


def test_a_taken_port_is_not_free_and_its_option_is_named() -> None:
    other = free_port()
    with socket.create_server(("127.0.0.1", free_port())) as server:
        taken = server.getsockname()[1]
        with patch.object(superlink, "PORTS", [taken] * 9 + [other]):
            assert free_port() == other
        with pytest.raises(ConfigError, match=f"port {taken} of 127.0.0.1: .*choose another with --port"):
            require_free_port("127.0.0.1", taken, "--port")
