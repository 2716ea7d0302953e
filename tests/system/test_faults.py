"""Kills of every process of a federation: the run ends with the model of the unbroken run, and nobody types a word."""

import signal
from pathlib import Path

import psutil
import pytest

from server.record.process import FOLDER, read_records
from tests.system.desk import NETWORK, Command, Desk, until

GOES_ON = "; the run goes on from round "

pytestmark = pytest.mark.system


def find(desk: Desk, name: str) -> psutil.Process:
    """Return the newest process of the run that is recorded under the name."""
    records = read_records(desk.folder / ".fedloom" / "up" / "run" / "server" / FOLDER)
    return psutil.Process([record for record in records if record.name == name][-1].pid)


def await_rounds(desk: Desk, command: Command, further: int) -> None:
    count = len(desk.rounds("run")) + further
    until(lambda: len(desk.rounds("run")) >= count or command.process.poll() is not None, command.error)
    assert command.process.poll() is None, command.error()


def test_a_run_survives_the_kill_of_each_server_process(desk: Desk, homes: Path) -> None:
    options = ("--data", homes, "--clients", "2", *NETWORK, "--rounds", "12", "--seed", "3", "--patience", "0")
    up = desk.up(*options, "--run-id", "run", "--no-alone")
    for faults, name in enumerate(("the ServerApp", "the SuperLink"), 1):
        await_rounds(desk, up, 2)
        find(desk, name).kill()
        until(lambda: up.error().count(GOES_ON) == faults, up.error)  # noqa: B023 (called at once)
    assert up.end() == 0, up.error()
    desk.require_clean(up)
    assert [event["round"] for event in desk.rounds("run")] == [*range(1, 13)]
    assert {event["answered"] for event in desk.rounds("run")} == {2}
    assert list(desk.folder.rglob("*.sqlite*")) == [], "the SuperLink's state is in memory, and this run has no ledger"

    assert desk.simulate(*options)["model_sha256"] == up.result()["model_sha256"]


def test_a_killed_command_leaves_no_process_and_is_resumed_at_once(desk: Desk, homes: Path) -> None:
    options = ("--data", homes, "--clients", "2", *NETWORK, "--rounds", "60", "--seed", "3", "--patience", "0")
    killed = desk.up(*options, "--run-id", "run", "--no-alone")
    await_rounds(desk, killed, 2)
    assert killed.end(signal.SIGKILL) == -signal.SIGKILL
    resumed = desk.up("--resume", "run", "--no-alone")
    until(lambda: killed.left_behind() == [], lambda: str(killed.left_behind()), seconds=20)
    assert resumed.end() == 0, resumed.error()
    assert "in use" not in resumed.error()
    assert [event["round"] for event in desk.rounds("run")] == [*range(1, 61)]


def test_a_dead_client_costs_seconds_and_is_started_again(desk: Desk, homes: Path) -> None:
    up = desk.up("--data", homes, "--clients", "3", *NETWORK, "--rounds", "5000", "--run-id", "run", "--patience", "0")
    await_rounds(desk, up, 3)
    find(desk, "client-2").kill()
    until(lambda: "client-2 ended with exit code -9; started again" in up.error(), up.error)
    await_rounds(desk, up, 2)
    until(lambda: desk.rounds("run")[-1]["answered"] == 3, up.error, seconds=20)
    again = find(desk, "client-2")
    again.suspend()
    until(lambda: desk.rounds("run")[-1]["answered"] == 2, up.error)
    until(lambda: "(client-2 gone since round " in up.error(), up.error)
    usual = sorted(event["seconds"] for event in desk.rounds("run"))[len(desk.rounds("run")) // 2]
    lost = [event["seconds"] for event in desk.rounds("run") if event["missing"]]
    assert max(lost) <= 3.0 + max(3 * usual, 1.2), "a restart takes a core meanwhile; the SuperLink notices after 20 s"
    again.resume()
    until(lambda: desk.rounds("run")[-1]["answered"] == 3, up.error, seconds=20)
    assert up.end(signal.SIGTERM) == 128 + signal.SIGTERM
    desk.require_clean(up)
