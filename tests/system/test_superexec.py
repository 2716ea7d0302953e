"""A SuperLink that outlives its runs starts a killed SuperExec again, and the run under way loses nothing."""

import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import tomli_w

from common.system_calls import is_linux
from deploy.federation.processes import Processes
from deploy.keys.certificates import ensure_certificates
from deploy.superlink.superlink import SuperLinkSettings, free_port, start_superlink
from tests.system.desk import NETWORK, ROOT, Command, Desk, until

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


def flwr_run(desk: Desk, settings: SuperLinkSettings) -> Command:
    """Start a run as Flower's users do, from a clone."""
    table = {"address": settings.control_address, "root-certificates": str(settings.folder / "ca.pem")}
    config = {"superlink": {"default": "train", "train": table}}
    (home := desk.folder / "flwr").mkdir()
    (home / "config.toml").write_text(tomli_w.dumps(config))
    options = 'method="fedrule" rounds=1 federation.min-clients=1'
    program = Path(sys.executable).with_name("flwr")
    command = ["env", f"FLWR_HOME={home}", str(program), "run", str(ROOT), "train", "--stream", "--run-config", options]
    return desk.program(command, desk.folder)


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
    second = flwr_run(desk, settings)
    assert second.end() == 0, second.error() + second.out.read_text()
    [result] = [one for one in (desk.folder / "runs").glob("*/result.json") if one.parent.name != "first"]
    assert f"run completed; result in {result}" in second.out.read_text() + second.error()
    assert [event["answered"] for event in desk.rounds(result.parent.name)] == [1]
