"""Copies of a fork server: what they run, whose children they are, and the end of the fork server."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from common.system_calls import is_linux
from deploy.federation.fork_server import ForkServer
from deploy.federation.processes import Child, Processes
from tests.system.desk import until

PROBE = """
import os, sys, time
print(sys.argv[1:], os.environ["PROBE"], os.getcwd(), "torch" in sys.modules, os.listdir("/proc/self/task"), flush=True)
time.sleep(float(sys.argv[1]))
sys.exit(4)
"""

pytestmark = pytest.mark.skipif(not is_linux(), reason="fork servers need Linux")


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    with closing(ForkServer()) as fork_server, Processes(fork_server=fork_server) as processes:
        fork_server.load("sessions")
        yield processes


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "probe.py").write_text(PROBE)
    return tmp_path


def start(processes: Processes, folder: Path, seconds: float) -> Child:
    command = [sys.executable, "-m", "probe", str(seconds)]
    environment = {**os.environ, "PROBE": "here", "PYTHONPATH": str(folder)}
    return processes.start("the probe", command, log=folder / "log", environment=environment, folder=folder)


def fork_server() -> psutil.Process:
    [found] = [
        one
        for one in psutil.Process().children()
        if "deploy.federation.fork_server" in one.cmdline() and one.name() != "probe"
    ]
    return found


def test_a_copy_runs_a_module_as_a_child_of_this_process_without_imports(processes: Processes, folder: Path) -> None:
    child = start(processes, folder, 0.0)
    until(lambda: child.process.poll() is not None, lambda: "no end", 60)
    assert child.process.poll() == 4
    arguments = f"['0.0'] here {folder} True ['{child.process.pid}']\n"
    assert (folder / "log").read_text() == arguments, "with all imports, and one thread"
    assert child in processes.take_ended()
    assert processes.take_ended() == []


def test_a_killed_copy_is_started_again_by_its_own_words(processes: Processes, folder: Path) -> None:
    child = start(processes, folder, 60.0)
    os.kill(child.process.pid, signal.SIGKILL)
    until(lambda: child.process.poll() is not None, lambda: "no end", 10)
    assert child.process.poll() == -signal.SIGKILL
    assert processes.take_ended() == [child]
    again = child.again()
    until(lambda: (folder / "log").exists() and "60.0" in (folder / "log").read_text(), lambda: "no start", 10)
    assert again.process.poll() is None
    processes.kill(again)
    assert fork_server().is_running(), "only the child and what it started are killed"


def test_a_killed_fork_server_is_replaced(processes: Processes, folder: Path) -> None:
    before = fork_server()
    before.kill()
    before.wait(5)
    child = start(processes, folder, 60.0)
    until(lambda: (folder / "log").exists() and "60.0" in (folder / "log").read_text(), lambda: "no start", 30)
    assert fork_server() != before
    processes.kill(child)
