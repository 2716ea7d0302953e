"""Watch of the processes that a SuperLink starts."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from deploy.server_app import LOOK_SECONDS, SUPEREXEC, ServerAppProcess
from tests.system.desk import until

SLEEPER = "import time; time.sleep(60)"
# like a SuperLink: starts a process whose command line names the SuperExec
SUPERLINK = (
    "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)', sys.argv[1]]);"
    " print(p.pid, flush=True); p.wait()"
)


class Clock:
    """Clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        self.now += LOOK_SECONDS
        return self.now


@pytest.fixture
def app() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", SLEEPER]) as process:
        yield process
        process.kill()


def test_a_server_app_is_lost_once_its_process_has_ended(app: subprocess.Popen[bytes]) -> None:
    watched = ServerAppProcess(0, lambda: app.pid, Clock())
    assert not watched.is_lost()
    app.kill()
    app.wait()
    assert watched.is_lost()


def test_a_zombie_has_ended(app: subprocess.Popen[bytes]) -> None:
    watched = ServerAppProcess(0, lambda: app.pid, Clock())
    watched.is_lost()
    app.kill()
    while not watched.is_lost():  # nobody has waited for it
        pass
    assert app.returncode is None


def test_a_process_of_an_earlier_attempt_is_not_watched(app: subprocess.Popen[bytes]) -> None:
    app.kill()
    app.wait()
    assert not ServerAppProcess(0, lambda: app.pid, Clock()).is_lost()


def test_a_superexec_that_ends_is_noticed() -> None:
    command = [sys.executable, "-c", SUPERLINK, SUPEREXEC]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as superlink:
        assert superlink.stdout is not None
        superexec = int(superlink.stdout.readline())
        watched = ServerAppProcess(superlink.pid, lambda: 0, Clock())
        until(lambda: not watched.is_lost() and bool(watched.seen), lambda: "the SuperExec is not seen", 10)
        subprocess.run(["kill", "-9", str(superexec)], check=True)
        superlink.wait(10)
        assert watched.is_lost()


def test_processes_are_looked_at_twice_a_second_only() -> None:
    looks = list[int]()
    watched = ServerAppProcess(0, lambda: looks.append(1) or 0)
    for _ in range(100):
        watched.is_lost()
    assert len(looks) == 1
