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
from deploy.federation.status import find_servers, stop_federation
from server.record.process import COMMAND, FOLDER, ProcessRecord, read_records, record_process
from tests.support.run_folders import make_run

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
