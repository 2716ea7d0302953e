"""`fedloom serve` and `fedloom join` as on separate machines, and Flower's stock client beside ours.

Each side has its own folder. As root, each side has its own network namespace too, and shares no loopback.
"""

import re
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.keys.nodes import add_key, make_node_key
from deploy.superlink.superlink import free_port
from tests.system.desk import NETWORK, Command, Desk, until
from tests.system.machines import Machines, connected_machines

DATA = "demo:0-20"
SIZE = ("--clients", "2", *NETWORK, "--rounds", "2", "--seed", "5", "--set", "evaluate-every=2")
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
        desk.finish("nodes", "add", folder / "node.key.pub", "--home", "home", folder=at_server)
    until(lambda: served.error().count("admitted ") == 2, served.error)  # the stock client does not wait for it
    supernode = _supernode(desk, machines, at_stock, f"{machines.address}:{desk.control_port}")
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

    assert desk.simulate("--data", DATA, *SIZE)["model_sha256"] == result["model_sha256"]


def test_clients_of_two_doors_end_in_the_model_of_one_although_a_door_is_killed(desk: Desk, machines: Machines) -> None:
    """The other door is on the machine of two clients, and reaches the server as they would."""
    at_server, at_door, near = (desk.folder / name for name in ("server", "door", "near"))
    size = ("--clients", "3", *NETWORK, "--rounds", "4", "--seed", "5", "--set", "evaluate-every=4")
    _create_keys(desk, machines, at_server, ())
    for folder in (at_door, near):
        shutil.copytree(at_server / "home", folder, ignore=shutil.ignore_patterns("*.key", "server.*"))
    run = (
        "serve",
        *size,
        "--set",
        "federation.min-replies=3",
        "--run-id",
        "doors",
        "--json",
        "--home",
        "home",
        "--port",
    )
    served = desk.start(
        *run, str(desk.port), "--control-port", str(desk.control_port), prefix=machines.server, folder=at_server
    )
    served.wait_for("0 registered keys")
    port = str(free_port())
    door = _open_door(desk, machines, at_door, port)
    [command] = re.findall(r"fedloom (nodes add \S+ --door) HOST", door.error())
    desk.finish(*command.split(), "127.0.0.1", "--home", "home", folder=at_server)
    door.wait_for("the door is open")
    _join_three(desk, machines, at_server / "home" / "nodes", near, port)
    until(lambda: len(desk.rounds("doors", at_server)) >= 1, served.error)
    door.end(signal.SIGKILL)
    again = _open_door(desk, machines, at_door, port)
    assert served.end() == 0, served.error() + again.error()
    assert {event["answered"] for event in desk.rounds("doors", at_server)} == {3}
    assert again.end(signal.SIGTERM) == 0, again.error()
    assert desk.simulate("--data", DATA, *size)["model_sha256"] == served.result()["model_sha256"]


def _open_door(desk: Desk, machines: Machines, folder: Path, port: str) -> Command:
    words = ("door", "--superlink", f"{machines.address}:{desk.port}", "--ca", "ca.pem", "--state-dir", ".")
    door = desk.start(*words, "--port", port, prefix=machines.clients, folder=folder)
    door.wait_for("--door HOST")
    return door


def _join_three(desk: Desk, machines: Machines, nodes: Path, folder: Path, port: str) -> None:
    """Join a client directly, and two by the door at a port of their machine."""
    far, near = (machines.others, f"{machines.others_address}:{desk.port}"), (machines.clients, f"127.0.0.1:{port}")
    for k, (prefix, address) in enumerate((far, near, near)):
        add_key(nodes, make_node_key(folder / f"{k}.key"), f"client-{k}")
        client = ("--data", DATA, "--shard", f"{k}/3", "--name", f"client-{k}", "--state-dir", f"state-{k}")
        join = ("join", "--server", address, "--ca", "ca.pem", "--key", f"{k}.key", *client)
        desk.start(*join, prefix=prefix, folder=folder)


def _create_keys(desk: Desk, machines: Machines, at_server: Path, at_clients: tuple[Path, ...]) -> None:
    names = ("--name", machines.address, "--name", machines.others_address)
    desk.finish("keys", "server", "--home", "home", *names, folder=at_server)
    for folder in at_clients:
        desk.finish("keys", "node", "node.key", folder=folder)
        shutil.copy(at_server / "home" / "ca.pem", folder)  # the owner distributes it


def _serve(desk: Desk, machines: Machines, folder: Path) -> Command:
    options = (*SIZE, "--run-id", "apart", "--json", "--home", "home")
    quorum = ("--set", "federation.min-replies=2")  # waits for the stock client, which is ten times slower
    ports = ("--port", str(desk.port), "--control-port", str(desk.control_port), "--stock")
    return desk.start("serve", *options, *quorum, *ports, prefix=machines.server, folder=folder)


def _join(desk: Desk, machines: Machines, folder: Path, address: str) -> Command:
    keys = ("--ca", "ca.pem", "--key", "node.key")
    client = ("--data", DATA, "--shard", "0/2", "--name", "client-0", "--state-dir", "state", "--patience", "170")
    return desk.start("join", "--server", address, *keys, *client, prefix=machines.clients, folder=folder)


def _supernode(desk: Desk, machines: Machines, folder: Path, address: str) -> Command:
    """Start Flower's stock client with our ClientApp; it starts a process per message."""
    config = f'data="{DATA}" shard="1/2" name="client-1" state-dir="{folder / "state"}"'
    key = ("--auth-supernode-private-key", "node.key")
    program = Path(sys.executable).with_name("flower-supernode")
    command = [str(program), "--superlink", address, "--root-certificates", "ca.pem", *key]
    command += ["--port", str(free_port()), "--node-config", config]  # of its own local API
    return desk.program([*machines.clients, *command], folder)
