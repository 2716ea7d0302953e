"""Server and clients from `deploy/compose.*.yml` as projects of their own, joined by one published port.

A client is killed, another is revoked and the server is killed; the model is that of a simulation without faults.
"""

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from client.tasks.rules.data.generator import demo_homes
from client.tasks.rules.data.homes import Homes, write_homes
from common.tasks.rules.vocabulary import demo_catalogue
from deploy.superlink.superlink import free_port
from tests.support.files_left import files_in, files_in_container, require_nothing_left
from tests.system.desk import until
from tests.system.engine import Machine, docker, require_engine

pytestmark = pytest.mark.container

ROUNDS, SECONDS = 3, 420.0
RUN = ("--method", "fedrule", "--rounds", str(ROUNDS), "--seed", "5", "--set", "training.local-steps=60")
OVERRIDE = """
services: {client: {network_mode: host}}  # reaches the port that is published on this machine's loopback
"""


@dataclass
class Federation:
    """Machines of a federation on one engine."""

    folder: Path
    server: Machine
    clients: dict[str, Machine]

    def client(self, name: str, invitation: str) -> Machine:
        """Start a client with its own data, and admit it by the line that it prints."""
        machine = self.clients[name]
        (machine.folder / "invite.fedloom").write_text(invitation)
        machine("up", "--detach")
        until(lambda: "fedloom nodes add" in machine.log(), machine.log, SECONDS)
        line = next(line for line in machine.log().splitlines() if "fedloom nodes add" in line)
        self.server.fedloom(*shlex.split(line[line.index("nodes add") :]), "--home", "/server")
        until(lambda: "connected to" in machine.log(), machine.log, SECONDS)
        return machine

    def rounds(self) -> int:
        """Return the number of completed rounds."""
        path = self.folder / "runs" / "apart" / "metrics.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return sum('"event":"round"' in line.replace(" ", "") for line in lines)

    def result(self) -> dict[str, Any]:
        path = self.folder / "runs" / "apart" / "result.json"
        found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return found


@pytest.fixture
def federation(tmp_path: Path) -> Iterator[Federation]:
    """Yield machines that are not started, with the image of this tree; they are removed after the test."""
    require_engine()
    port = free_port()
    serve = shlex.join([*RUN, "--clients", "2", "--catalogue", "/config/catalogue.json"])
    variables = {
        "FEDLOOM_NAME": "127.0.0.1",
        "BIND": "127.0.0.1",
        "PORT": str(port),
        "RUN": "apart",
        "OPTIONS": f"{serve} --set federation.min-replies=2",
        "FEDLOOM_RUNS": str(tmp_path / "runs"),
        "FEDLOOM_UMASK": "000",
    }
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs").chmod(0o777)
    server = Machine("server", "server", tmp_path / "server", variables)
    server.folder.mkdir()
    (server.folder / "catalogue.json").write_text(demo_catalogue().to_json())
    (tmp_path / "data").mkdir()
    clients = {}
    for k, name in enumerate(("client-0", "client-1", "eve")):
        folder = tmp_path / name
        folder.mkdir()
        clients[name] = Machine("client", name, folder, {"DATA": "homes.csv", "DATA_FOLDER": str(folder), "NAME": name})
        (folder / "override.yml").write_text(OVERRIDE)
        (folder / "policy.toml").write_text("")
        write_homes(folder / "homes.csv", Homes(demo_homes(10 * k, 10 * k + 10, seed=1), demo_catalogue()))
        (folder / "homes.csv").chmod(0o644)
        if name != "eve":
            (tmp_path / "data" / f"{name}.csv").write_bytes((folder / "homes.csv").read_bytes())
    machines = [server, *clients.values()]
    for machine in machines:
        machine("down", "-v", check=False)
    server("build", "--quiet")
    try:
        yield Federation(tmp_path, server, clients)
    finally:
        for machine in machines:
            machine("down", "-v", check=False)


def test_faults_change_nothing_in_the_model(federation: Federation) -> None:
    server = federation.server
    server("up", "--detach")
    until(lambda: "waits for 2 clients" in server.log(), server.log, SECONDS)
    address = f"127.0.0.1:{server.variables['PORT']}"
    invitation = server(
        "exec", "-T", "server", "sh", "-c", f"fedloom invite --home /server --server {address} --out - 2>/dev/null"
    )

    eve = federation.client("eve", invitation)
    server.fedloom("nodes", "revoke", "eve", "--home", "/server")
    until(lambda: "does not admit this node's key" in eve.log(), eve.log, SECONDS)
    killed = federation.client("client-0", invitation)
    second = federation.client("client-1", invitation)

    until(lambda: federation.rounds() >= 1, server.log, SECONDS)
    killed.kill()
    until(lambda: federation.rounds() >= 2, server.log, SECONDS)
    server.kill()
    until(lambda: federation.result().get("rounds_done") == ROUNDS, server.log, SECONDS)
    until(lambda: server.state("{{.State.Status}}") == "exited", server.log, SECONDS)

    assert server.state("{{.State.ExitCode}}") == "0"
    assert int(killed.state("{{.RestartCount}}")) >= 1
    assert int(server.state("{{.RestartCount}}")) >= 1
    assert eve.log().count("connected to") == 1
    result = federation.result()
    assert (result["status"], sorted(result["clients"])) == ("completed", ["client-0", "client-1"])
    assert result["model_sha256"] == simulated(federation.folder)["model_sha256"]
    left = files_in([federation.folder / "runs"]) | {"log": server.log().encode()}
    left |= files_in_container(server.container(), "/server")
    for client in (killed, second):  # what they keep of their own updates is what is searched for
        left |= files_in_container(client.container(), "/state")
    require_nothing_left(left)


def simulated(folder: Path) -> dict[str, Any]:
    """Return the result of a simulation by the same image, on the same data, where nobody is killed."""
    mounts = [
        "-v",
        f"{folder / 'data'}:/data:ro",
        "-v",
        f"{folder / 'server'}:/config:ro",
        "-e",
        "FEDLOOM_RUNS=/tmp/runs",
        "-w",
        "/tmp",
    ]
    words = ["fedloom", "simulate", "--data", "/data", "--clients", "2", "--catalogue", "/config/catalogue.json"]
    printed = docker("run", "--rm", "--network", "none", *mounts, "fedloom", *words, *RUN, "--json")
    found: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return found
