"""Hubs over TLS: two processes with two clients each, and a client by itself."""

import re
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from client.app import open_session
from client.owner.status import read_status
from client.session import Session
from client.settings import ClientSettings
from client.tasks.rules.data.generator import demo_homes
from client.tasks.rules.data.homes import Homes, write_homes
from common.config.parse import parse
from common.node_names import read_names
from common.tasks.rules.vocabulary import demo_catalogue
from deploy.cli.app import app
from deploy.keys.certificates import ensure_certificates
from deploy.keys.nodes import make_node_key
from server.record.folder import RunDirectory
from server.run import run
from tests.support.hubs import NodeGrid, direct
from tests.system.desk import NETWORK, Command, Desk

pytestmark = pytest.mark.system


def test_two_hubs_and_a_client_end_in_the_model_of_five_nodes(
    desk: Desk, homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure_certificates(desk.folder / "home", [])
    for name, clients in (("ward", 2), ("shop", 2), ("alone", 1)):
        make_node_key(desk.folder / f"{name}.key")
        register(desk.folder, name, clients)
    _write_shop(desk.folder / "shop")

    options = ("--clients", "5", *NETWORK, "--rounds", "2", "--seed", "5", "--run-id", "hubs", "--home", "home")
    served = desk.start(
        "serve", *options, "--port", str(desk.port), "--control-port", str(desk.control_port),
        "--set", "federation.min-replies=5", "--json",
    )  # fmt: skip
    served.wait_for("3 registered keys")
    ward = join(desk, "ward", "--data", str(homes), "--clients", "2")
    shop = join(desk, "shop", "--data", "shop")
    alone = join(desk, "alone", "--data", "demo:90-100")
    assert served.end() == 0, "\n".join(command.error() for command in desk.commands)

    result = served.result()
    assert sorted(result["clients"]) == ["alone", "shop/east", "shop/west", "ward/client-0", "ward/client-1"]
    assert [(event["asked"], event["answered"]) for event in desk.rounds("hubs")] == [(5, 5)] * 2
    for command in (ward, shop, alone):
        assert command.end(signal.SIGTERM) == 0, command.error()
    assert "nothing here protects them from its operator" in ward.error()
    assert re.search(r"run hubs round 2/2: 2 of 2 clients trained, [\d.]+ s, sent \d+ kB", shop.error()), shop.error()
    found = {client.client: client.runs["hubs"].trained for client in read_status(desk.folder / "shop-state").clients}
    assert found["shop/east"] == found["shop/west"] == [1, 2]
    sources = [
        *dealt(desk.folder, "ward"),
        *((name, "shop", str(desk.folder / "shop" / f"{name}.csv")) for name in ("east", "west")),
    ]
    assert run_flat(desk.folder, "hubs", sources, monkeypatch) == result["model_sha256"]


def register(folder: Path, name: str, clients: int) -> None:
    words = ["nodes", "add", str(folder / f"{name}.key.pub"), "--home", str(folder / "home"), "--name", name]
    done = CliRunner().invoke(app, [*words, "--clients", str(clients)])
    assert done.exit_code == 0, done.exception
    assert read_names(folder / "home" / "nodes")[name].clients == clients


def join(desk: Desk, name: str, *words: str) -> Command:
    keys = ("--ca", "home/ca.pem", "--key", f"{name}.key", "--state-dir", f"{name}-state", "--name", name)
    return desk.start("join", "--server", f"127.0.0.1:{desk.port}", *keys, *words)


def _write_shop(folder: Path) -> None:
    folder.mkdir()
    for k, name in enumerate(("east", "west")):
        write_homes(folder / f"{name}.csv", Homes(demo_homes(0, 10, seed=2 + k), demo_catalogue()))
    (folder / "careful.toml").write_text('share-metrics = "never"\n')
    (folder / "clients.toml").write_text(
        '[clients.east]\ndata = "east.csv"\npolicy = "careful.toml"\n[clients.west]\ndata = "west.csv"\n'
    )


def dealt(folder: Path, hub: str) -> list[tuple[str, str, str]]:
    """Return name, hub and table of each client of a hub of two."""
    tables = sorted((folder / ".fedloom" / "dealt").glob("*-rules-2/client-*/*.csv"))
    return [(f"client-{k}", hub, str(table)) for k, table in enumerate(tables)]


def run_flat(folder: Path, name: str, sources: list[tuple[str, str, str]], monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the same clients, and the client by itself, on nodes of their own in this process; return the hash of the model."""
    sessions = [_open(folder, *source) for source in [*sources, ("alone", "", "demo:90-100")]]
    monkeypatch.setattr("server.clients.enrolment.NODE_NAME", re.compile(".*"))
    config = parse(RunDirectory(folder / "runs", name).config())
    return run(NodeGrid({k: direct(s) for k, s in enumerate(sessions, start=1)}), config, folder / "flat").model_sha256


def _open(folder: Path, name: str, hub: str, data: str) -> Session:
    return open_session(ClientSettings(data=data, name=name, hub=hub, state_dir=folder / "flat-state"))
