"""End of a federation by its records, with real processes."""

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from common.errors import ConfigError
from deploy.cli.app import app
from deploy.cli.options import LOCAL
from deploy.federation.status import find_servers, stop_federation
from deploy.keys.nodes import add_key, make_node_key, read_key
from server.record.events import Finish, Refusal, Waiting
from server.record.folder import RunDirectory
from server.record.process import COMMAND, FOLDER, ProcessRecord, read_records, record_process
from tests.support.run_folders import make_run
from tests.support.ui import a_round, a_start, write_run

SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]

Start = Callable[[list[str]], subprocess.Popen[str]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a starter of processes, which end with the test; it waits for their first line if they print one."""
    started: list[subprocess.Popen[str]] = []

    def begin(command: list[str]) -> subprocess.Popen[str]:
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield begin
    for process in started:
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(process.pid).children(recursive=True):
                child.kill()
        process.kill()
        process.communicate()


def is_running(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_a_command_ends_its_processes_itself(start: Start, tmp_path: Path) -> None:
    script = f"""
        import signal, time
        from pathlib import Path
        from deploy.federation.processes import Processes
        from server.record.process import COMMAND, record_process
        records = Path({str(tmp_path / FOLDER)!r})
        try:
            with Processes() as processes:
                child = processes.start("the SuperLink", {SLEEPER!r})
                record_process(records, COMMAND, run="r1")
                record_process(records, child.name, child.process.pid)
                print(child.process.pid, flush=True)
                time.sleep(60)
        finally:
            Path({str(tmp_path / "unwound")!r}).touch()
    """
    command = start([sys.executable, "-c", textwrap.dedent(script)])
    assert command.stdout is not None
    superlink = int(command.stdout.readline())
    found = stop_federation(tmp_path)
    assert [(one.name, one.pid, one.run) for one in found] == [
        (COMMAND, command.pid, "r1"),
        ("the SuperLink", superlink, ""),
    ]
    assert command.wait(5) == 143
    assert (tmp_path / "unwound").exists()
    assert not is_running(superlink)
    assert not list((tmp_path / FOLDER).iterdir())
    assert stop_federation(tmp_path) == []


def test_processes_of_a_killed_command_are_ended_with_those_they_started(start: Start, tmp_path: Path) -> None:
    detaching = (
        "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'],"
    )
    detaching += " start_new_session=True); print(p.pid, flush=True); time.sleep(60)"
    superlink = start([sys.executable, "-c", detaching])
    assert superlink.stdout is not None
    grandchild = int(superlink.stdout.readline())
    record_process(tmp_path / FOLDER, "the SuperLink", superlink.pid)
    assert [one.pid for one in stop_federation(tmp_path)] == [superlink.pid]
    assert not is_running(superlink.pid)
    assert not is_running(grandchild)


def test_a_process_that_ignores_sigterm_is_killed(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deploy.federation.status.GRACE_SECONDS", 0.3)
    ignoring = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    stubborn = start([sys.executable, "-c", ignoring])
    assert stubborn.stdout is not None
    stubborn.stdout.readline()
    record_process(tmp_path / FOLDER, "the ServerApp", stubborn.pid)
    begun = time.monotonic()
    assert len(stop_federation(tmp_path)) == 1
    assert 0.3 <= time.monotonic() - begun < 5
    assert not is_running(stubborn.pid)


def test_a_later_process_of_a_recorded_id_is_left_alone(start: Start, tmp_path: Path) -> None:
    other = start(SLEEPER)
    record = ProcessRecord("the SuperLink", other.pid, psutil.Process(other.pid).create_time() - 3600, "r1")
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / f"{other.pid}.json").write_text(json.dumps(asdict(record)))
    assert stop_federation(tmp_path) == []
    assert is_running(other.pid)


def test_servers_of_serve_and_up_are_found(tmp_path: Path) -> None:
    (tmp_path / "up" / "r1" / "server").mkdir(parents=True)
    assert find_servers(tmp_path) == [tmp_path / "server", tmp_path / "submit", tmp_path / "up" / "r1" / "server"]


def test_the_command_names_what_it_stopped_and_how_to_continue(start: Start, here: Path) -> None:
    make_run(here / "runs", "r1", rounds=3, status="running")
    (here / "runs" / "r1" / "origin.json").write_text('{"command": "up", "data": "demo", "clients": 2}')
    folder = Path(".fedloom/up/r1/server")
    (folder / FOLDER).mkdir(parents=True)
    for place, run in ((folder, "r1"), (Path("elsewhere"), "")):
        record_process(place / FOLDER, "the ServerApp", start(SLEEPER).pid, run)
    [record] = read_records(folder / FOLDER)
    done = CliRunner().invoke(app, ["stop"])
    assert done.exit_code == 0
    assert done.stdout == f"stopped the federation in {folder}: the ServerApp (process {record.pid})\n"
    assert "continue the run with fedloom up --resume r1" in done.stderr
    [stopped] = json.loads(CliRunner().invoke(app, ["stop", "--home", "elsewhere", "--json"]).stdout)
    assert (stopped["home"], stopped["name"]) == ("elsewhere", "the ServerApp")
    assert os.getpid() != stopped["pid"]


@pytest.mark.parametrize(("words", "place"), [((), "of this folder"), (("--home", "none"), "in none")])
def test_without_a_federation_the_next_step_is_named(words: tuple[str, ...], place: str, here: Path) -> None:
    done = CliRunner().invoke(app, ["stop", *words])
    assert isinstance(done.exception, ConfigError)
    assert f"no federation {place} is running; give the --home of `fedloom serve`" in str(done.exception)


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
