"""`fedloom status` in a server's folder: run, rounds, clients, those it waits for, and processes."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from common.errors import ConfigError
from deploy.cli.app import app
from deploy.cli.options import LOCAL
from deploy.keys.nodes import add_key, make_node_key, read_key
from server.record.events import Finish, Refusal, Waiting
from server.record.folder import RunDirectory
from server.record.process import COMMAND, FOLDER, record_process
from tests.support.ui import a_round, a_start, write_run

HOME = LOCAL / "server"
WAITING = Waiting(time=1.7e9, online=["shop-1"], wanted=2, until=1.7e9)


@pytest.fixture
def served(here: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    """Return a run that `serve` was asked for in this folder; nobody on this machine has joined one."""
    monkeypatch.setattr("deploy.commands.status.STATE", here / "nobody")
    HOME.mkdir(parents=True)
    (HOME / "order.toml").write_text('port = 9092\n[config]\nrun-id = "spring"\n')
    return write_run(here / "runs", "spring")


def status(*words: str) -> str:
    done = CliRunner().invoke(app, ["status", *words], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_a_run_in_progress_has_its_newest_round_and_its_processes(served: RunDirectory) -> None:
    record_process(HOME / FOLDER, COMMAND, run="spring")
    assert "run spring: starts; no client is enrolled yet" in status()
    for event in (a_start("spring"), a_round(1), a_round(2, answered=1, missing=["shop-2"], gone={"shop-2": 1})):
        served.append(event)
    text = status()
    assert f"server {HOME}: run spring (fedavg on rules): trains; 2 of 9 rounds done\n" in text
    assert "round 2/9 · train loss" in text
    assert "1/2 clients (shop-2 gone since round 1)" in text
    assert f"fedloom (process {os.getpid()}); fedloom stop ends them" in text


def test_a_waiting_run_names_who_is_connected_and_who_is_not(served: RunDirectory) -> None:
    record_process(HOME / FOLDER, COMMAND, run="spring")
    for name in ("shop-1", "shop-2"):
        make_node_key(Path(f"{name}.key"))
        add_key(HOME / "nodes", read_key(f"{name}.key.pub"), name)
    served.append(WAITING)
    served.append(Refusal(client="shop-3", reason="no"))
    text = status()
    assert "run spring: waits for clients; no round done" in text
    assert "waiting for clients: 1 connected, 2 required (shop-1), until 2023-11-1" in text
    assert "registered and not connected: shop-2\n" in text
    served.append(a_start("spring"))
    assert "required" not in status()


def test_a_run_without_processes_is_not_running_or_over(served: RunDirectory) -> None:
    for event in (a_start("spring"), a_round(1), WAITING):
        served.append(event)
    assert "not running; 1 of 9 rounds done" in status()
    served.append(Finish(status="failed", reason="1 of 2 clients answered\nand a trace"))
    text = status()
    assert "failed; 1 of 9 rounds done\n" in text
    assert "  1 of 2 clients answered\n" in text
    served.append(a_start("spring"))
    assert "not running; 1 of 9 rounds done" in status(), "a resumed run is not over"


def test_as_json_it_has_the_events_themselves(served: RunDirectory) -> None:
    served.append(a_start("spring"))
    served.append(a_round(1))
    found = json.loads(status("--json"))
    [server] = found["federations"]
    assert (server["run"], server["state"], server["last"]["round"]) == ("spring", "stopped", 1)
    assert server["waiting"] is None
    assert "clients" not in found, "no client has run on this machine"


def test_server_and_client_of_one_machine_are_both_shown(served: RunDirectory, here: Path) -> None:
    (here / "state").mkdir()
    text = status("--state-dir", "state")
    assert "run spring" in text
    assert "no client has run here yet" in text
    assert "no client" not in status("--home", str(HOME))


def test_a_folder_without_a_server_is_named(here: Path) -> None:
    done = CliRunner().invoke(app, ["status", "--home", "none"])
    assert isinstance(done.exception, ConfigError)
    assert "no server has run in none" in str(done.exception)
