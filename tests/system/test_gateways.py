"""Two gateways in a row over TLS, with a hub and a client; the lower one is killed and comes back."""

import os
import signal
from pathlib import Path

import psutil
import pytest

from deploy.certificates import ensure_certificates
from deploy.keys import make_node_key
from deploy.ports import free_port
from server.process_records import COMMAND, read_records
from tests.system.desk import Command, Desk, until
from tests.system.test_hubs import dealt, join, register, run_flat

pytestmark = pytest.mark.system


def test_a_killed_gateway_comes_back_and_the_model_is_that_of_single_nodes(
    desk: Desk, homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for home in ("home", "north-home", "west-home"):
        ensure_certificates(desk.folder / home, [])
    nodes = (("north", 3, "home"), ("west", 3, "north-home"), ("ward", 2, "west-home"), ("alone", 1, "west-home"))
    for name, clients, home in nodes:
        make_node_key(desk.folder / f"{name}.key")
        register(desk.folder, name, clients, home)
    above, ports = (free_port(), free_port()), (free_port(), free_port())

    north = start(desk, "north", "home", desk.port, above)
    gateway = start(desk, "west", "north-home", above[0], ports)
    behind = [
        join(desk, "ward", "--data", str(homes), "--clients", "2", home="west-home", port=ports[0]),
        join(desk, "alone", "--data", "demo:90-100", home="west-home", port=ports[0]),
    ]
    for command in behind:
        command.wait_for("connected to")
    options = ("--clients", "3", "--rounds", "4", "--seed", "5", "--run-id", "passed", "--home", "home", "--json")
    quick = ("--set", "federation.min-replies=3", "--set", "federation.answer=replies", "--set", "evaluate-every=4")
    served = desk.start("serve", *options, *quick, "--port", str(desk.port), "--control-port", str(desk.control_port))
    until(lambda: "trained" in gateway.error() or gateway.process.poll() is not None, gateway.error)
    family = gateway.family()
    os.kill(gateway.process.pid, signal.SIGKILL)
    assert gateway.end() == -signal.SIGKILL
    psutil.wait_procs(family, 10)
    again = start(desk, "west", "north-home", above[0], ports)
    assert served.end() == 0, "\n".join(command.error() for command in desk.commands)

    result = served.result()
    assert sorted(result["clients"]) == ["north/west/alone", "north/west/ward/client-0", "north/west/ward/client-1"]
    assert [(event["asked"], event["answered"]) for event in desk.rounds("passed")] == [(3, 3)] * 4
    assert "run passed round 4: 3 of 3 clients trained" in again.error()
    assert "2 gateways on the way to the server" in behind[1].error()
    assert COMMAND in [record.name for record in read_records(desk.folder / "west-home" / "processes")]
    for command in (again, north, *behind):
        assert command.end(signal.SIGTERM) == 0, command.error()
    assert run_flat(desk.folder, "passed", dealt(desk.folder, "ward"), monkeypatch) == result["model_sha256"]


def start(desk: Desk, name: str, home: str, port: int, ports: tuple[int, int]) -> Command:
    """Run a gateway, a node of the server in `home`, with ports of its own."""
    above = ("--server", f"127.0.0.1:{port}", "--ca", f"{home}/ca.pem", "--key", f"{name}.key", "--name", name)
    here = ("--home", f"{name}-home", "--port", str(ports[0]), "--control-port", str(ports[1]), "--clients", "3")
    return desk.start("gateway", *above, *here)
