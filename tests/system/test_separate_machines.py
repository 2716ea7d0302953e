"""`fedloom serve` and `fedloom join` as on separate machines, and Flower's stock client beside ours.

Each side has its own folder. As root, each side has its own network namespace too, and shares no loopback.
"""

import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.superlink.superlink import free_port
from tests.system.desk import NETWORK, Command, Desk, until
from tests.system.machines import Machines, connected_machines

SIZE = ("--clients", "2", *NETWORK, "--rounds", "2", "--seed", "5")
pytestmark = pytest.mark.system


@pytest.fixture
def machines() -> Iterator[Machines]:
    with connected_machines() as found:
        yield found


def test_a_stock_supernode_trains_beside_a_client_whose_key_is_registered_later(desk: Desk, machines: Machines) -> None:
    at_server, at_client, at_stock = (desk.folder / name for name in ("server", "client", "stock"))
    address = f"{machines.address}:{desk.port}"
    _create_keys(desk, machines, at_server, (at_client, at_stock))
    served = _serve(desk, machines, at_server)
    served.wait_for("0 registered keys")
    joined = _join(desk, machines, at_client, address)
    joined.wait_for("does not admit this node's key")

    for folder in (at_client, at_stock):  # only public halves are sent
        _fedloom(desk, at_server, "nodes", "add", str(folder / "node.key.pub"), "--home", "home")
    until(lambda: served.error().count("admitted ") == 2, served.error)  # the stock client does not wait for it
    supernode = _supernode(desk, machines, at_stock, address)
    joined.wait_for("connected to")
    assert served.end() == 0, served.error() + supernode.error()
    result = served.result()
    assert sorted(result["clients"]) == ["client-0", "client-1"]
    assert {event["answered"] for event in desk.rounds("apart", at_server)} == {2}
    assert joined.end(signal.SIGTERM) == 0
    assert "left " in joined.error()

    private = (at_client / "node.key").read_bytes()
    files = [path for side in (at_server, at_stock) for path in side.rglob("*") if path.is_file()]
    assert not any(private in path.read_bytes() for path in files)

    assert desk.simulate(*SIZE)["model_sha256"] == result["model_sha256"]


def _create_keys(desk: Desk, machines: Machines, at_server: Path, at_clients: tuple[Path, ...]) -> None:
    _fedloom(desk, at_server, "keys", "server", "--home", "home", "--name", machines.address)
    for folder in at_clients:
        _fedloom(desk, folder, "keys", "node", "node.key")
        shutil.copy(at_server / "home" / "ca.pem", folder)  # the owner distributes it


def _serve(desk: Desk, machines: Machines, folder: Path) -> Command:
    options = (*SIZE, "--run-id", "apart", "--json", "--home", "home")
    quorum = ("--set", "federation.min-replies=2")  # waits for the stock client, which is ten times slower
    ports = ("--port", str(desk.port), "--control-port", str(desk.control_port))
    return desk.start("serve", *options, *quorum, *ports, prefix=machines.server, folder=folder)


def _join(desk: Desk, machines: Machines, folder: Path, address: str) -> Command:
    keys = ("--ca", "ca.pem", "--key", "node.key")
    client = ("--shard", "0/2", "--name", "client-0", "--state-dir", "state", "--patience", "170")
    return desk.start("join", "--server", address, *keys, *client, prefix=machines.clients, folder=folder)


def _supernode(desk: Desk, machines: Machines, folder: Path, address: str) -> Command:
    """Start Flower's stock client with our ClientApp; it starts a process per message."""
    config = f'data="demo" shard="1/2" name="client-1" state-dir="{folder / "state"}"'
    key = ("--auth-supernode-private-key", "node.key")
    program = Path(sys.executable).with_name("flower-supernode")
    command = [str(program), "--superlink", address, "--root-certificates", "ca.pem", *key]
    command += ["--port", str(free_port()), "--node-config", config]  # of its own local API
    return desk.program([*machines.clients, *command], folder)


def _fedloom(desk: Desk, folder: Path, *arguments: str) -> None:
    command = desk.start(*arguments, folder=folder)
    assert command.end() == 0, command.error()
