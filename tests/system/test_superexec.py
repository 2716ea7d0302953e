"""A SuperLink that outlives its runs starts a killed SuperExec again, and the run under way loses nothing."""

import sys
from collections.abc import Iterator

import psutil
import pytest

from common.system_calls import is_linux
from deploy.federation.processes import Processes
from deploy.keys.certificates import ensure_certificates
from deploy.superlink.superlink import SuperLinkSettings, free_port, start_superlink
from tests.system.desk import NETWORK, Command, Desk, until

pytestmark = [pytest.mark.system, pytest.mark.skipif(not is_linux(), reason="processes end with each other on Linux")]


@pytest.fixture
def superlink(desk: Desk) -> Iterator[tuple[SuperLinkSettings, psutil.Process]]:
    home = desk.folder / "server"
    settings = SuperLinkSettings(
        home,
        ensure_certificates(home),
        port=free_port(),
        control_port=free_port(),
        environment={"FEDLOOM_RUNS": str(desk.folder / "runs"), "OMP_NUM_THREADS": "1"},
    )
    with Processes() as processes:
        child = start_superlink(processes, settings)
        yield settings, psutil.Process(child.process.pid)


def superexec_of(superlink: psutil.Process) -> psutil.Process | None:
    """Return the SuperExec of a SuperLink, once it runs."""
    for process in superlink.children():
        try:
            if process.exe() and process.cmdline()[:3] == [sys.executable, "-m", "deploy.superlink.superexec"]:
                return process
        except psutil.Error:
            continue
    return None


def submit(desk: Desk, settings: SuperLinkSettings, run: str, rounds: int) -> Command:
    ca = settings.folder / "ca.pem"
    size = ("--clients", "1", *NETWORK, "--rounds", str(rounds), "--seed", "0", "--patience", "0")
    return desk.start("submit", "--run-id", run, *size, "--control", settings.control_address, "--ca", ca, "--json")


def test_a_killed_superexec_costs_no_round_and_later_runs_start(
    desk: Desk, superlink: tuple[SuperLinkSettings, psutil.Process]
) -> None:
    settings, process = superlink
    client = ("--data", "demo:0-40", "--shard", "0/4", "--name", "client-0", "--state-dir", desk.folder / "state")
    joined = desk.start("join", "--server", settings.address, "--ca", settings.folder / "ca.pem", *client)
    first = submit(desk, settings, "first", 30)
    until(lambda: len(desk.rounds("first")) >= 2 or first.process.poll() is not None, first.error)
    killed = superexec_of(process)
    assert killed is not None
    killed.kill()
    assert first.end() == 0, first.error() + joined.error()
    assert [event["round"] for event in desk.rounds("first")] == [*range(1, 31)]
    until(lambda: superexec_of(process) not in (None, killed), settings.log.read_text)
    assert "SuperExec ended with exit code -9; started again in 0.2 s" in settings.log.read_text()
    second = submit(desk, settings, "second", 1)
    assert second.end() == 0, second.error() + settings.log.read_text()[-3000:]
